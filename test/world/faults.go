package world

import (
	"net/http"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// faults are what goes wrong now.
type faults struct {
	world *World
}

func (f *faults) of(a *Agent, life int, r *http.Request) wire.Fault { return wire.Fault{} }

func (f *faults) bootFails() bool          { return false }
func (f *faults) bootDelay() time.Duration { return 0 }
