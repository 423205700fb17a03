"""The seconds that a benchmark may take, and the rounds that fit into them."""

import time


class Budget:
    def __init__(self, seconds, now=time.monotonic):
        self.now = now
        self.until = now() + seconds

    def left(self):
        return max(0.0, self.until - self.now())

    def rounds(self, wanted, least=2):
        """Counts up to `wanted` rounds. After `least` rounds it stops when another round would not fit, and at any time
        when no time is left."""
        longest = 0
        for number in range(wanted):
            if self.left() < longest and number >= least or self.left() == 0:
                return
            begun = self.now()
            yield number
            longest = max(longest, self.now() - begun)
