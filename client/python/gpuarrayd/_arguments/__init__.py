"""What users hand over: arrays of all kinds, as sources and destinations of jobs."""
