"""What the server does not do yet, by the test that asks for it. A test of this list must fail: when it passes, its line goes."""

GAPS = {}
