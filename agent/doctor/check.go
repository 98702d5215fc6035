package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if loadErr == nil {
		add(LevelOK, "configuration", fmt.Sprintf("%d variables known, none wrong", len(config.Variables())), "")
	}
	if cfg.StateDir == "" {
		return out // nothing was read, so there is nothing to look at
	}
	out = append(out, checkWritable("state directory", cfg.StateDir, config.Prefix+"_STATE_DIR")...)
	if cfg.Socket != "off" && cfg.Socket != "" && !offline {
		out = append(out, checkWritable("socket directory", filepath.Dir(cfg.Socket), config.Prefix+"_SOCKET")...)
	}
	out = append(out, checkGroupsFile(cfg)...)
	for _, f := range append(checkPublished(cfg), checkAttest(cfg)...) {
		if offline && f.Level == LevelError {
			f.Level = LevelWarning // one service's trouble does not keep the others from starting
		}
		out = append(out, f)
	}
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

func checkWritable(about, dir, variable string) []Finding {
	f, err := os.CreateTemp(dir, ".check-*")
	if errors.Is(err, os.ErrNotExist) {
		return []Finding{{Level: LevelWarning, About: about, Text: dir + " does not exist", Remedy: "systemd makes it for the unit; otherwise make it, or set " + variable}}
	}
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: err.Error(), Remedy: "make it writable for the agent's user, or set " + variable}}
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		return []Finding{{Level: LevelWarning, About: about, Text: err.Error()}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: dir + " is writable"}}
}

// checkPublished looks at the directory of the file that bootstrap publishes.
func checkPublished(cfg config.Config) []Finding {
	if !cfg.Bootstrap.Enabled || cfg.Bootstrap.File == "" {
		return nil
	}
	target := cfg.Bootstrap.File
	if to, err := os.Readlink(target); err == nil { // it may dangle until the first publication
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	return checkWritable("publish directory", filepath.Dir(target), config.Prefix+"_BOOTSTRAP_FILE")
}
