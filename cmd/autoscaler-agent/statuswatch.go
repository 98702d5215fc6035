package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

// watchEvery is the time between two looks of --watch.
const watchEvery = 2 * time.Second

// watchStatus prints the status, the map of all machines and the last day again and again until ctx ends. The first
// look must succeed; an agent that goes away later is waited for.
func watchStatus(ctx context.Context, socket string, out io.Writer) error {
	for first := true; ; first = false {
		var screen bytes.Buffer
		err := look(ctx, socket, &screen, text.Columns(out), text.Coloured(out))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return noAnswer(socket, err)
		case err != nil:
			fmt.Fprintf(&screen, "no agent answers on %s: %v\n", socket, err)
		}
		clear := ""
		if text.Columns(out) > 0 {
			clear = "\x1b[H\x1b[2J" // a terminal: from its top, anew
		}
		if _, err := fmt.Fprintf(out, "%s%s  %s\n\n%s", clear, time.Now().UTC().Format(time.DateTime), "(Ctrl-C ends it; times are UTC)", screen.Bytes()); err != nil {
			return failed("write", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// look asks once and prints.
func look(ctx context.Context, socket string, out io.Writer, columns int, colour bool) error {
	var screen text.Screen
	for path, part := range map[string]any{"/status": &screen.Status, localapi.HistoryPath: &screen.Day, fmt.Sprintf("%s?most=%d", localapi.FleetPath, text.FleetBoxes): &screen.Fleet} {
		if err := agentsocket.Ask(ctx, socket, path, part); err != nil {
			return err
		}
	}
	screen.Print(out, columns, colour)
	return nil
}
