"""gradus-run: starts the ranks of a distributed program on this host, as torchrun does.

It stands alone, without the rest of the driver, so that it can be installed with the library.
"""
