package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// checkLimit bounds each thing that is tried.
const checkLimit = 30 * time.Second

// Check tries everything that the agent needs and returns what it found, good and
// bad. offline leaves out what needs the network. It changes nothing, except that
// it writes and removes an empty file to see whether a directory is writable. Its
// writes to the API server are dry runs.
func Check(ctx context.Context, cfg config.Config, loadErr error, offline bool) []Finding {
	var out []Finding
	add := func(level Level, about, text, remedy string) {
		out = append(out, Finding{Level: level, About: about, Text: text, Remedy: remedy})
	}
	for _, e := range config.Flatten(loadErr) {
		add(LevelError, "configuration", e.Error(), "")
	}
	for _, e := range config.Flatten(cfg.WrongFiles()) {
		add(LevelError, "configuration", e.Error(), "")
	}
	for _, text := range cfg.Warnings() {
		add(LevelWarning, "configuration", text, "")
	}
	if loadErr == nil {
		add(LevelOK, "configuration", fmt.Sprintf("%d variables known, none wrong", len(config.Variables())), "")
	}
	if cfg.StateDir == "" {
		return out // nothing was read, so there is nothing to look at
	}
	out = append(out, filesAsUnit(ctx, cfg, offline)...)
	if offline {
		return out
	}
	out = append(out, checkKubernetes(ctx, cfg)...)
	for _, f := range checkCloud(ctx, cfg) {
		// A provider judges its own configuration once more.
		if loadErr == nil || !strings.Contains(loadErr.Error(), f.Text) {
			out = append(out, f)
		}
	}
	return out
}
