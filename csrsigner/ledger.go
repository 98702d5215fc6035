package csrsigner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// ledger remembers which instance got its client certificate (J13): one for each, ever.
// It is written before the approval is, so that a crash between the two forgets nothing;
// the same key may ask again.
type ledger struct {
	path string // "": memory only
	log  *logrus.Entry

	mu      sync.Mutex
	entries map[cluster.InstanceID]Issue
}

const (
	ledgerVersion = 1
	// ledgerKeep is how long an entry outlives its instance.
	ledgerKeep = 24 * time.Hour
)

type ledgerFile struct {
	Version int                          `json:"version"`
	Joined  map[cluster.InstanceID]Issue `json:"joined"`
}

// openLedger reads the ledger of dir. A torn or foreign file is set aside and reported:
// live Nodes, the launch window and requests that the API server still has stand in.
func openLedger(dir string, log *logrus.Entry) *ledger {
	l := &ledger{log: log, entries: map[cluster.InstanceID]Issue{}}
	if dir == "" {
		return l
	}
	l.path = filepath.Join(dir, "joined.json")
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l
	}
	var file ledgerFile
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err == nil && file.Version != ledgerVersion {
		err = fmt.Errorf("version is %d, not %d", file.Version, ledgerVersion)
	}
	if err != nil {
		log.WithFields(logrus.Fields{"rule": "J13", "why": err.Error()}).Warn("the ledger of joined machines cannot be read: it is set aside and begun anew")
		if err := os.Rename(l.path, l.path+".bad"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.WithError(err).Warn("the ledger of joined machines cannot be set aside")
		}
		return l
	}
	if file.Joined != nil {
		l.entries = file.Joined
	}
	return l
}

func (l *ledger) of(id cluster.InstanceID) *Issue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.entries[id]; ok {
		return &i
	}
	return nil
}

// enter writes that an instance gets its certificate. Unless that is on disk the
// certificate must not be approved.
func (l *ledger) enter(id cluster.InstanceID, i Issue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.entries[id]; ok {
		if old.Key != i.Key {
			return fmt.Errorf("instance %s got its certificate by request %s, with another key", id, old.CSR)
		}
		return nil // the same machine again; the first time is the one that counts
	}
	next := maps.Clone(l.entries)
	next[id] = i
	return l.write(next)
}

// prune forgets instances that a whole read of the cloud no longer has.
func (l *ledger) prune(groups []cluster.NodeGroup, now time.Time) {
	there := map[cluster.InstanceID]bool{}
	for _, g := range groups {
		if g.Stale != "" {
			return
		}
		for _, i := range g.Instances {
			there[i.ID] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := maps.Clone(l.entries)
	maps.DeleteFunc(next, func(id cluster.InstanceID, i Issue) bool { return !there[id] && now.Sub(i.At) > ledgerKeep })
	if len(next) == len(l.entries) {
		return
	}
	if err := l.write(next); err != nil {
		l.log.WithError(err).Debug("the ledger of joined machines keeps what is gone")
	}
}

func (l *ledger) write(next map[cluster.InstanceID]Issue) error {
	if l.path != "" {
		data, err := json.Marshal(ledgerFile{Version: ledgerVersion, Joined: next})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(l.path), 0o700)
		}
		if err == nil {
			_, err = atomicfile.Write(l.path, append(data, '\n'), 0o600)
		}
		if err != nil {
			return fmt.Errorf("keep who has joined: %w", err)
		}
	}
	l.entries = next
	return nil
}
