"""Where outputs and small state are kept between calls: on disk or in Redis."""
