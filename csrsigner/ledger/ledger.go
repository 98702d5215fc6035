// Package ledger keeps which instance got its client certificate (rule J13), and from when on this
// agent has seen every approval.
//
// It refuses to let one instance in twice with two keys or under two names, and to take what it
// cannot know for new.
package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// Ledger remembers which instance got its client certificate (J13): one for each, ever.
// It is written before the approval is, so that a crash between the two forgets nothing;
// the same key may ask again. Beside what this agent approves it keeps every approval that
// it sees, by the Node's name: approvals of another agent, of kubeadm's tokens, of a person.
type Ledger struct {
	path string // "": memory only
	log  *logrus.Entry

	mu      sync.Mutex
	entries map[cluster.InstanceID]rules.Issue
	grants  map[string][]rules.Issue // by Node name
	// since is from when on this agent has seen every approval, leading or not; zero: always.
	// seen is when it was last written down that it still does.
	since, seen time.Time
}

const (
	version = 1
	// Keep is how long an entry outlives its instance.
	Keep = 24 * time.Hour
	// PruneAge is how old the list of instances may be that says what is gone: far less than
	// Keep, so that it has each instance whose entry could be dropped.
	PruneAge = time.Hour
	// grantsKept is how many approvals are kept for one name: a kubelet that lives renews
	// its certificate with a new key each time, and the first proves as much as the last.
	grantsKept = 8
	// approvedKept is how long the API server has an approved request for an agent that begins to
	// watch: an hour (csrcleaner of kube-controller-manager), less what clocks differ by.
	approvedKept = 55 * time.Minute
	// NoteEvery is how often the ledger is told that the agent watches: a stop that is longer than
	// approvedKept leaves a gap.
	NoteEvery = 10 * time.Minute
)

type file struct {
	Version int                                `json:"version"`
	Joined  map[cluster.InstanceID]rules.Issue `json:"joined"`
	Granted map[string][]rules.Issue           `json:"granted,omitempty"`
	Since   time.Time                          `json:"since,omitzero"`
	Seen    time.Time                          `json:"seen,omitzero"`
}

// Open reads the ledger of dir, and removes what a crash left beside it. A torn or
// foreign file, or a directory in its place, is set aside and reported: live Nodes, the launch window and requests that the API server still has stand in.
func Open(dir string, log *logrus.Entry) *Ledger {
	l := &Ledger{log: log, entries: map[cluster.InstanceID]rules.Issue{}, grants: map[string][]rules.Issue{}}
	if dir == "" {
		return l
	}
	l.path = filepath.Join(dir, "joined.json")
	kept, err := atomicfile.Load(l.path, time.Now(), func(data []byte, to *file) error { return atomicfile.Versioned(data, version, to) })
	if err != nil {
		log.WithFields(logrus.Fields{"rule": "J13", "why": err.Error()}).Warn("the ledger of joined machines cannot be read whole")
	}
	if l.since, l.seen = kept.Since, kept.Seen; kept.Version == 0 { // a new one, or one that was set aside
		l.since = time.Now()
	}
	if kept.Joined != nil {
		l.entries = kept.Joined
	}
	if kept.Granted != nil {
		l.grants = kept.Granted
	}
	return l
}

// Watches notes that this agent sees every approval from now on, or still does.
func (l *Ledger) Watches(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.IsZero() && now.Sub(l.seen) > approvedKept-NoteEvery {
		l.since = now // it was away, and what was approved first is forgotten by the API server
	}
	l.seen = now
	return l.write(l.entries, l.grants)
}

// Gap says why it is not known whether an instance that was launched then has a certificate; empty:
// it is known. Another agent may have approved one before this agent watched.
func (l *Ledger) Gap(launched time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if launched.IsZero() || !launched.Add(approvedKept).Before(l.since) {
		return ""
	}
	return fmt.Sprintf("this agent has seen approvals since %s, and the API server keeps an approved request for an hour: whether another agent has let the instance in before is not known (launched %s)",
		l.since.UTC().Format(time.RFC3339), launched.UTC().Format(time.RFC3339))
}

// Of is the certificate that an instance got; nil: none is known.
func (l *Ledger) Of(id cluster.InstanceID) *rules.Issue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.entries[id]; ok {
		return &i
	}
	return nil
}

// Enter writes that an instance gets its certificate. Unless that is on disk the
// certificate must not be approved.
func (l *Ledger) Enter(id cluster.InstanceID, i rules.Issue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.entries[id]; ok {
		// The same machine again, whose first time is the one that counts; or one whose key
		// a person has approved.
		if old.Same(i) || slices.ContainsFunc(l.grants[i.Node], i.Same) {
			return nil
		}
		return fmt.Errorf("instance %s got its certificate as Node %s by request %s, with another key or as another Node", id, old.Node, old.CSR)
	}
	next := maps.Clone(l.entries)
	next[id] = i
	return l.write(next, l.grants)
}

// Granted are the approvals that were seen for a Node's name.
func (l *Ledger) Granted(node string) []rules.Issue {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.grants[node])
}

// Newest is when the newest certificate that is known of each Node's name was asked for.
func (l *Ledger) Newest() map[cluster.NodeName]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[cluster.NodeName]time.Time, len(l.entries))
	newer := func(i rules.Issue) {
		if name := cluster.NodeName(i.Node); i.At.After(out[name]) {
			out[name] = i.At
		}
	}
	for _, i := range l.entries {
		newer(i)
	}
	for _, list := range l.grants {
		for _, i := range list {
			newer(i)
		}
	}
	return out
}

// Learn keeps an approval that was seen, unless it is known.
func (l *Ledger) Learn(i rules.Issue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, own := range l.entries {
		if own.Same(i) {
			return nil
		}
	}
	old := l.grants[i.Node]
	if slices.ContainsFunc(old, i.Same) {
		return nil
	}
	next := maps.Clone(l.grants)
	next[i.Node] = append(slices.Clone(old[max(0, len(old)+1-grantsKept):]), i)
	return l.write(l.entries, next)
}

// Prune forgets instances that a whole read of the cloud no longer has.
func (l *Ledger) Prune(groups []cluster.NodeGroup, now time.Time) {
	there, names := map[cluster.InstanceID]bool{}, map[string]bool{}
	for _, g := range groups {
		if g.Stale != "" {
			return
		}
		for _, i := range g.Instances {
			there[i.ID] = true
			for _, n := range i.NodeNames {
				names[rules.CanonicalName(n)] = true
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := maps.Clone(l.entries)
	maps.DeleteFunc(next, func(id cluster.InstanceID, i rules.Issue) bool { return !there[id] && now.Sub(i.At) > Keep })
	grants := maps.Clone(l.grants)
	maps.DeleteFunc(grants, func(node string, list []rules.Issue) bool {
		return !names[node] && !slices.ContainsFunc(list, func(i rules.Issue) bool { return now.Sub(i.At) <= Keep })
	})
	if len(next) == len(l.entries) && len(grants) == len(l.grants) {
		return
	}
	if err := l.write(next, grants); err != nil {
		l.log.WithError(err).Debug("the ledger of joined machines keeps what is gone")
	}
}

func (l *Ledger) write(next map[cluster.InstanceID]rules.Issue, grants map[string][]rules.Issue) error {
	if l.path != "" {
		data, err := json.Marshal(file{Version: version, Joined: next, Granted: grants, Since: l.since, Seen: l.seen})
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
	l.entries, l.grants = next, grants
	return nil
}
