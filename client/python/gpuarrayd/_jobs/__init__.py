"""The text form, and jobs: requests, futures, progress."""
