package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
)

// lookEvery is how often the file is looked at; a look is one stat.
const lookEvery = 2 * time.Second

// goneAfter is how many looks in a row must miss a file that was there before it counts
// as removed: editors replace a file by a rename.
const goneAfter = 3

// Live is groups.yaml as it is now: read again when it changes, the last good one kept
// when the new one is wrong. Safe for concurrent use.
type Live struct {
	path    string
	prices  string
	clouds  map[string]Section
	log     *logrus.Entry
	changed func() // called after a change took effect; nil: no one is told

	mu     sync.Mutex
	file   File
	seen   stamp
	missed int
	fault  string // why the file as it is now is not in force
	worked time.Time
	cached []cluster.Headroom
	scale  float64 // of the last read of all groups; see scale
}

// stamp tells two versions of a file apart.
type stamp struct {
	there    bool
	modified time.Time
	size     int64
}

// Open reads the file at path for the first time. A file that is not there says
// nothing; one that is wrong is an error that names everything wrong in it.
// clouds are the providers that may have a section in it; prices is a value of AUTOSCALER_PRICES.
func Open(path string, clouds map[string]Section, prices string, log *logrus.Entry) (*Live, error) {
	l := &Live{path: path, clouds: clouds, prices: prices, log: log, scale: 1}
	l.seen = l.look()
	file, err := l.read()
	if err != nil {
		return nil, err
	}
	l.file = file
	return l, nil
}

// OnChange sets what is called after a change took effect. Call it before Run.
func (l *Live) OnChange(do func()) { l.changed = do }

func (l *Live) look() stamp {
	st, err := os.Stat(l.path)
	if err != nil {
		return stamp{}
	}
	return stamp{there: true, modified: st.ModTime(), size: st.Size()}
}

// mostBytes is more than any groups.yaml has.
const mostBytes = 16 << 20

func (l *Live) read() (File, error) {
	if l.path == "" {
		return File{}, nil
	}
	data, err := textfile.Read(l.path, mostBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("read node group settings: %w (correct the file, or set AUTOSCALER_GROUPS_FILE to another)", err)
	}
	f, err := Parse(data, l.clouds)
	if err != nil {
		return File{}, named(err, l.path)
	}
	return f, nil
}

// Run looks at the file until ctx ends. It never returns an error: a file that is
// wrong is a fact, and the last good one holds.
func (l *Live) Run(ctx context.Context, beat func()) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.Look()
			beat()
		}
	}
}

// Look takes a new version of the file into force, if there is one and it is right.
func (l *Live) Look() {
	now := l.look()
	l.mu.Lock()
	if now == l.seen {
		l.missed = 0
		l.mu.Unlock()
		return
	}
	if l.missed++; !now.there && l.missed < goneAfter {
		l.mu.Unlock()
		return
	}
	l.seen, l.missed = now, 0
	l.mu.Unlock()
	file, err := l.read()
	l.take(file, err)
}

func (l *Live) take(file File, err error) {
	l.mu.Lock()
	if err != nil {
		l.fault = err.Error()
	} else {
		l.file, l.fault, l.worked = file, "", time.Time{}
	}
	l.mu.Unlock()
	if err != nil {
		l.log.WithField("why", err.Error()).Error("the node group settings are wrong, the last good ones stay in force: " + err.Error())
		return
	}
	l.log.Infof("the node group settings of %s are in force: %d groups, %d headroom, %d sections of providers", l.path, len(file.Groups), len(file.Headroom), len(file.Clouds))
	if l.changed != nil {
		l.changed()
	}
}

// Fault says why the file as it is now is not in force; empty: it is.
func (l *Live) Fault() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// File is what is in force. The caller does not change it.
func (l *Live) File() File {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.file
	f.Prices = l.prices
	return f
}

// Section is a provider's own section as it is now in force; nil: there is none. The
// caller does not change it.
func (l *Live) Section(provider string) json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Clouds[provider]
}

// headroomFor is how long windows that were worked out are good: they reach a week
// ahead.
const headroomFor = time.Hour

// Headroom is the room that is to be kept free, with its windows around now. The
// caller does not change it.
func (l *Live) Headroom(now time.Time) []cluster.Headroom {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.worked.IsZero() || now.Sub(l.worked) > headroomFor || now.Before(l.worked) {
		l.cached, l.worked = l.file.HeadroomAt(now), now
	}
	return l.cached
}

// scaleOf is scale of the groups of a read; a read of some groups has that of the last read of
// all.
func (l *Live) scaleOf(list []cluster.NodeGroup, whole bool) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if whole {
		l.scale = scale(list)
	}
	return l.scale
}

// Overlay lays the settings over what p tells of its groups. Writes go through as
// they are.
func (l *Live) Overlay(p provider.Provider, r cluster.Reservation) provider.Provider {
	return overlay{p, l, r}
}

type overlay struct {
	provider.Provider
	live *Live
	r    cluster.Reservation
}

func (o overlay) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	list, err := o.Provider.Groups(ctx)
	f := o.live.File()
	f.lay(list, o.r)
	setPrices(list, f.Prices, o.live.scaleOf(list, provider.Only(ctx) == nil))
	return list, err
}
