"""What cannot be done, and why."""


class Refused(Exception):
    """Ends gradus-run with a message and an exit status: 2 a wrong flag, 126 and 127 a program that cannot be started."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status
