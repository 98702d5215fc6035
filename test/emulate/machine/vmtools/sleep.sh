#!/bin/sh
# Waits between attempts cost a test nothing but time.
exec "$REAL_SLEEP" "$MACHINE_SLEEP"
