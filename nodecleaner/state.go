package nodecleaner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// keptManifests is how many manifests of deleted Nodes are kept; the oldest go first.
const keptManifests = 200

// annotationDeleted tells when and why a Node was deleted. It stands only in a kept
// manifest, never on a Node.
const annotationDeleted = "autoscaler-agent/deleted"

// keep writes the Node's manifest, so that an operator can bring it back.
func (s *Service) keep(n *corev1.Node, d reaper.Deletion, now time.Time) error {
	if s.deps.StateDir == "" {
		return nil
	}
	n = n.DeepCopy()
	n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[annotationDeleted] = now.UTC().Format(time.RFC3339) + " " + d.Rule + ": " + d.Why
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	dir := manifestDir(s.deps.StateDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := atomicfile.Write(filepath.Join(dir, n.Name+"-"+string(n.UID)+".json"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return prune(dir, keptManifests)
}

func manifestDir(stateDir string) string { return filepath.Join(stateDir, "nodes") }

// prune keeps the newest files of dir.
func prune(dir string, most int) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= most {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var files []aged
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			files = append(files, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	var errs []error
	for _, f := range files[min(most, len(files)):] {
		if err := os.Remove(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// saved is the state file.
type saved struct {
	Version int           `json:"version"`
	Memory  reaper.Memory `json:"memory"`
}

const (
	savedVersion = 1
	saveEvery    = 90 * time.Second // while nothing is watched; less than silence, or a kill would look like an outage
	saveWatched  = 10 * time.Second // while something is
)

func statePath(stateDir string) string { return filepath.Join(stateDir, "nodecleaner.json") }

// save writes the memory at intervals; a loss by a crash only costs time.
func (s *Service) save(now time.Time, always bool) {
	every := saveEvery
	if len(s.memory.Watch) > 0 {
		every = saveWatched
	}
	if s.deps.StateDir == "" || !always && now.Sub(s.savedAt) < every {
		return
	}
	s.savedAt = now
	data, err := json.Marshal(saved{Version: savedVersion, Memory: s.memory})
	if err == nil {
		err = os.MkdirAll(s.deps.StateDir, 0o700)
	}
	if err == nil {
		_, err = atomicfile.Write(statePath(s.deps.StateDir), append(data, '\n'), 0o600)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.saveError && err != nil {
		s.log.WithField("why", text).Warn("the ledger of instances is not saved: a restart will wait longer before it deletes")
	}
	s.saveError = text
}

// decode takes no unknown field: the scaler's state.json has a memory of its own, and what is lost costs time alone.
func decode(data []byte, to *saved) error { return atomicfile.Exactly(data, savedVersion, to) }

// Peek reads the saved memory of a service with this state directory, for commands.
func Peek(stateDir string) (reaper.Memory, error) {
	data, err := os.ReadFile(statePath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return reaper.Memory{}, nil
	}
	var file saved
	if err == nil {
		err = decode(data, &file)
	}
	if err != nil {
		return reaper.Memory{}, fmt.Errorf("read the ledger of instances: %w", err)
	}
	return file.Memory, nil
}

// load reads the memory, and removes temporary files that a crash left. A torn or foreign
// file, or a directory in its place, is set aside and reported. After a longer absence the
// ledger is trusted and the timers are not: Decide sees the gap after LastRound and freezes
// (B3).
func (s *Service) load() reaper.Memory {
	if s.deps.StateDir == "" {
		return reaper.Memory{}
	}
	if _, err := atomicfile.SweepDir(manifestDir(s.deps.StateDir)); err != nil {
		s.log.WithError(err).Warn("what a crash left in the state directory cannot be removed")
	}
	file, err := atomicfile.Load(statePath(s.deps.StateDir), time.Now(), decode)
	if err != nil {
		s.log.WithField("why", err.Error()).Warn("the ledger of instances cannot be read whole")
	}
	return file.Memory
}
