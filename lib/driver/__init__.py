"""The commands of ./gradus."""
