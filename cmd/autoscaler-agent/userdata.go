package main

import (
	"context"
	"io"
)

func userdataCommand(ctx context.Context, args []string, out, errout io.Writer) int { return exitUsage }
