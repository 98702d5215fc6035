package statefile

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// historyVersion changes when a field of history.Saved changes its meaning.
const historyVersion = 1

// How often the history is written: with each sample of a day, and after a decision a minute after the
// last write at the earliest. What a crash loses is drawn as a gap.
const (
	historyEvery   = history.Step
	decisionsEvery = time.Minute
)

// HistoryFile keeps a History in <StateDir>/history.json. Not safe for concurrent use.
type HistoryFile struct {
	path      string
	written   time.Time // zero: not since the start
	decisions int       // that the file has
}

// HistoryIn is the file of a state directory.
func HistoryIn(dir string) *HistoryFile {
	return &HistoryFile{path: filepath.Join(dir, "history.json")}
}

// Load reads the file into h. A missing file is an empty history; a torn or foreign one is set aside
// and reported, and h is empty then too.
func (f *HistoryFile) Load(h *history.History, now time.Time) error {
	_, err := atomicfile.Load(f.path, now, func(data []byte, to *history.Saved) error {
		if err := atomicfile.Exactly(data, historyVersion, to); err != nil {
			return err
		}
		return h.Restore(*to, now)
	})
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	return nil
}

// Save writes the file where that is due; at the end of the agent it always is.
func (f *HistoryFile) Save(h *history.History, now time.Time, end bool) error {
	if f == nil {
		return nil
	}
	since, decisions := now.Sub(f.written), h.Decisions()
	if due := end || since >= historyEvery || since < 0 || decisions != f.decisions && since >= decisionsEvery; !due {
		return nil
	}
	f.written, f.decisions = now, decisions
	saved := h.Save()
	saved.Version = historyVersion
	data, err := json.Marshal(saved)
	if err == nil {
		_, err = atomicfile.Write(f.path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}
