package attest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// ledger remembers with which key an instance was attested (A13): the first that came. It
// is on disk before a token leaves.
type ledger struct {
	path string // "": memory only

	writing sync.Mutex // held while the file is written; before mu

	mu   sync.Mutex
	keys map[string]attested // by instance
	next *flush              // what the next write takes along; nil: nothing waits
}

// flush is one write for all that came before it.
type flush struct {
	keys map[string]attested
	done chan struct{}
	err  error
}

type attested struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

const (
	ledgerVersion = 1
	ledgerKeep    = 48 * time.Hour // longer than any window
)

type ledgerFile struct {
	Version  int                 `json:"version"`
	Attested map[string]attested `json:"attested"`
}

// openLedger reads the ledger of dir. A torn or foreign file is set aside and told: who has
// joined is known from the Nodes and from the certificates all the same.
func openLedger(dir string, log *logrus.Entry) *ledger {
	l := &ledger{keys: map[string]attested{}}
	if dir == "" {
		return l
	}
	l.path = filepath.Join(dir, "attested.json")
	file, err := atomicfile.Load(l.path, time.Now(), func(data []byte, to *ledgerFile) error { return atomicfile.Versioned(data, ledgerVersion, to) })
	if err != nil {
		log.WithFields(logrus.Fields{"rule": "A13", "why": err.Error()}).Warn("the ledger of attested machines cannot be read whole")
	}
	if file.Attested != nil {
		l.keys = file.Attested
	}
	return l
}

// key is the one that the instance was attested with; empty: none.
func (l *ledger) key(instance string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[instance].Key
}

// enter writes that an instance is attested with a key, and returns the first key, which
// stays. Machines that come while one write is under way share the next: a growth of
// hundreds costs few.
func (l *ledger) enter(instance, key string, now time.Time) (first string, err error) {
	l.mu.Lock()
	if old, ok := l.keys[instance]; ok {
		l.mu.Unlock()
		return old.Key, nil
	}
	if l.next == nil {
		l.next = &flush{keys: map[string]attested{}, done: make(chan struct{})}
	}
	mine := l.next
	if _, ok := mine.keys[instance]; !ok {
		mine.keys[instance] = attested{Key: key, At: now}
	}
	l.mu.Unlock()

	l.writing.Lock()
	select {
	case <-mine.done: // somebody else has written it
	default:
		l.flush(now)
	}
	l.writing.Unlock()
	if mine.err != nil {
		return "", fmt.Errorf("write that instance %s is attested: %w", instance, mine.err)
	}
	return l.key(instance), nil
}

// flush writes what has come until now. The caller holds writing.
func (l *ledger) flush(now time.Time) {
	l.mu.Lock()
	f := l.next
	l.next = nil
	next := maps.Clone(l.keys)
	maps.DeleteFunc(next, func(_ string, a attested) bool { return now.Sub(a.At) > ledgerKeep })
	for instance, a := range f.keys {
		if _, ok := next[instance]; !ok { // it may have come with the write before
			next[instance] = a
		}
	}
	l.mu.Unlock()
	var data []byte
	if l.path != "" {
		if data, f.err = json.Marshal(ledgerFile{Version: ledgerVersion, Attested: next}); f.err == nil {
			_, f.err = atomicfile.Write(l.path, data, 0o600)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.err == nil {
		l.keys = next
	}
	close(f.done)
}
