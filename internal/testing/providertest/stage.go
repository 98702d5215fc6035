package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

var sprintf = fmt.Sprintf

// stage is one case under way.
type stage struct {
	testing.TB
	p      provider.Provider
	w      World
	settle func()
}

func (s *stage) ctx() context.Context { return context.Background() }

// read reads all groups and wants no error.
func (s *stage) read() map[cluster.GroupID]cluster.NodeGroup {
	s.Helper()
	groups, err := s.p.Groups(s.ctx())
	if err != nil {
		s.Fatalf("read: %v", err)
	}
	return s.byID(groups)
}

func (s *stage) byID(groups []cluster.NodeGroup) map[cluster.GroupID]cluster.NodeGroup {
	s.Helper()
	out := map[cluster.GroupID]cluster.NodeGroup{}
	for _, g := range groups {
		if _, twice := out[g.ID]; twice {
			s.Errorf("group %s is listed twice", g.ID)
		}
		out[g.ID] = g
	}
	return out
}

// group reads one group.
func (s *stage) group(id cluster.GroupID) cluster.NodeGroup {
	s.Helper()
	g, ok := s.read()[id]
	if !ok {
		s.Fatalf("group %s is not listed", id)
	}
	return g
}

func (s *stage) wantTarget(id cluster.GroupID, n int) {
	s.Helper()
	if got := s.w.Target(id); got != n {
		s.Errorf("the target of %s is %d, want %d", id, got, n)
	}
}

func (s *stage) wantAlive(id cluster.GroupID, want []cluster.InstanceID) {
	s.Helper()
	if got := s.w.Alive(id); !slices.Equal(sorted(got), sorted(want)) {
		s.Errorf("alive in %s: %v, want %v", id, got, want)
	}
}

func sorted(ids []cluster.InstanceID) []cluster.InstanceID {
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}

// wantKind wants an *Error of that kind.
func (s *stage) wantKind(err error, kind provider.Kind) {
	s.Helper()
	if err == nil {
		s.Errorf("no error, want kind %q", kind)
	} else if got := provider.KindOf(err); got != kind || len(provider.Errors(err)) == 0 {
		s.Errorf("kind %q, want %q: %v", got, kind, err)
	}
}

// wantUnsure wants an error of a change to say whether the change may have been made.
func (s *stage) wantUnsure(err error, want bool) {
	s.Helper()
	some, all := provider.Unsure(err)
	if got := all || len(some) > 0; got != want {
		s.Errorf("Unsure is %v, want %v: %v", got, want, err)
	}
}

// late tells the errors of a call that another one has overtaken: the world is not as the
// caller believed, or the cloud finishes the other one first.
func late(err error) bool {
	kind := provider.KindOf(err)
	return kind == provider.Conflict || kind == provider.Busy
}

// wantLate wants an *Error that is late.
func (s *stage) wantLate(err error) {
	s.Helper()
	if !late(err) {
		s.wantKind(err, provider.Conflict)
	}
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v", err)
	}
}

// print renders groups for comparison: without the times of the read and in an
// order of its own.
func print(groups map[cluster.GroupID]cluster.NodeGroup) string {
	for id, g := range groups {
		g.ReadAt, g.NamesReadAt = time.Time{}, time.Time{}
		g.Instances = slices.Clone(g.Instances)
		slices.SortFunc(g.Instances, func(a, b cluster.Instance) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
		groups[id] = g
	}
	raw, err := json.MarshalIndent(groups, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
