package providertest

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// asks asks for instances and wants no error.
func (s *stage) asks(ids ...cluster.InstanceID) map[cluster.InstanceID]cluster.Testimony {
	s.Helper()
	said, err := provider.Ask(s.ctx(), s.p, ids...)
	if err != nil {
		s.Errorf("ask for %v: %v", ids, err)
	}
	return said
}

// ended tells that somebody would take the instance for gone.
func ended(t cluster.Testimony) bool {
	return t.Existence == cluster.InstanceTerminated || t.Existence == cluster.InstanceNotFound
}

// instancesByID: what lives exists, whatever it is asked together with.
func instancesByID(s *stage) {
	ids := append(s.w.Alive(Workers), s.w.Alive(Others)...)
	said := s.asks(ids...)
	for _, id := range ids {
		if said[id].Existence != cluster.InstanceExists {
			s.Errorf("%s lives, and the cloud says %+v", id, said[id])
		}
	}
	if none := s.asks(); len(none) != 0 {
		s.Errorf("nothing was asked, and the cloud says %v", none)
	}
}

// instanceOutsideGroupsByID: an instance that is in no group has not ended for that.
func instanceOutsideGroupsByID(s *stage) {
	id := s.w.Foreign(s)
	if said := s.asks(id)[id]; ended(said) {
		s.Errorf("%s lives in no group, and the cloud says %+v", id, said)
	}
}

// goneInstanceByID: what has ended is said to have ended, and what lives exists in the
// same answer.
func goneInstanceByID(s *stage) {
	alive := s.w.Alive(Workers)
	others := s.w.Alive(Others)
	s.read() // what a provider has to have seen of them
	s.ok(s.p.Delete(s.ctx(), Workers, alive[0]))
	s.w.Kill(alive[1])
	s.settle()
	said := s.asks(append(alive, others...)...)
	for _, id := range alive {
		if !ended(said[id]) && said[id].Existence != cluster.InstanceUnclaimed {
			s.Errorf("%s has ended, and the cloud says %+v", id, said[id])
		}
	}
	for _, id := range others {
		if said[id].Existence != cluster.InstanceExists {
			s.Errorf("%s lives, and the cloud says %+v", id, said[id])
		}
	}
}

// malformedIDIsUnknown: that there is nothing of this name proves nothing.
func malformedIDIsUnknown(s *stage) {
	id := s.w.Alive(Workers)[0]
	bad := id + "x"
	said, _ := provider.Ask(s.ctx(), s.p, bad, id) // an error is as good
	if ended(said[bad]) {
		s.Errorf("%s is malformed, and the cloud says %+v", bad, said[bad])
	}
	if said[id].Existence != cluster.InstanceExists {
		s.Errorf("%s lives, and asked for it together with a malformed ID the cloud says %+v", id, said[id])
	}
}

// troubleEndsNothing: a failure is an error, and nothing has ended by it.
func troubleEndsNothing(s *stage) {
	id := s.w.Alive(Workers)[0]
	unknown := func(ctx context.Context, what string) error {
		s.Helper()
		said, err := provider.Ask(ctx, s.p, id)
		if said[id].Existence != cluster.ExistenceUnknown || said[id].Why == "" {
			s.Errorf("%s: the cloud says %+v, want that it is not known, and why", what, said[id])
		}
		return err
	}
	s.w.Throttle(s, true)
	s.wantKind(unknown(s.ctx(), "throttled"), provider.Transient)
	s.w.Throttle(s, false)
	s.w.Expire(s, true)
	s.wantKind(unknown(s.ctx(), "credentials expired"), provider.Denied)
	s.w.Expire(s, false)
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	if err := unknown(ctx, "cancelled"); err == nil {
		s.Errorf("cancelled: no error")
	}
	if said := s.asks(id)[id]; said.Existence != cluster.InstanceExists {
		s.Errorf("the trouble is over, and the cloud says %+v", said)
	}
}
