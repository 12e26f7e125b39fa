"""The lazy form: arrays that are computed when they are asked for."""
