package world

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

type judge struct{ world *World }

func newJudge(w *World) *judge { return &judge{world: w} }

func (j *judge) machineEnds(m *machine)                                        {}
func (j *judge) nodeChanged(kind watch.EventType, was, is apiserver.Object)    {}
func (j *judge) podChanged(kind watch.EventType, was, is apiserver.Object)     {}
func (j *judge) requestChanged(kind watch.EventType, was, is apiserver.Object) {}
