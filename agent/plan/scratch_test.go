package plan

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/plantest"
)

// TestScratch decides one world after the other with one scratch: what was written there before
// must not show, what is written there later must not change an answer that was given,
// and nothing of a round stays there.
func TestScratch(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	defer func(old *sync.Pool) { scratchPool = old }(scratchPool)
	one := new(scratch)
	type answer struct {
		plan   decision.Plan
		memory decision.Memory
		text   []byte
	}
	var given []answer
	uses, most := 0, 0
	for i := range 30 * times {
		s, m, p := someWorld(r)
		if i%5 == 0 {
			s, m, p = plantest.KarpenterMix(t0, 5+r.IntN(15), 1+r.IntN(9)), decision.Memory{}, packPolicy()
		}
		scratchPool = &sync.Pool{New: func() any { return new(scratch) }}
		want, wantMemory := Decide(s, m, p)
		scratchPool = &sync.Pool{New: func() any { return one }}
		got, memory := Decide(s, m, p)
		scratchPool.New = nil
		kept := scratchPool.Get() == one
		a := answer{got, memory, append(text(t, got), text(t, memory)...)}
		if !bytes.Equal(a.text, append(text(t, want), text(t, wantMemory)...)) {
			t.Fatalf("round %d: with used scratch\n%s\non a new one\n%s", i, got, want)
		}
		given = append(given, a)
		if uses++; !kept {
			one, uses = new(scratch), 0
		}
		most = max(most, uses)
		empty(t, reflect.ValueOf(one).Elem(), "scratch")
	}
	if most < 3 {
		t.Errorf("no scratch was used more than %d times: the test shows little", most)
	}
	for i, a := range given {
		if !bytes.Equal(a.text, append(text(t, a.plan), text(t, a.memory)...)) {
			t.Errorf("the answer of round %d was written over: %s", i, a.plan)
		}
	}
}

// empty complains of pointers in what scratch holds.
func empty(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "free": // the rest of a block
			case "blocks":
				for b := range v.Field(i).Len() {
					wiped(t, v.Field(i).Index(b), path)
				}
			default:
				empty(t, v.Field(i), path+"."+name)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			empty(t, v.Index(i), path)
		}
	case reflect.Slice:
		wiped(t, v, path)
	}
}

func wiped(t *testing.T, v reflect.Value, path string) {
	if !points(v.Type().Elem()) {
		return
	}
	v = v.Slice(0, v.Cap())
	for i := range v.Len() {
		if !v.Index(i).IsZero() {
			t.Fatalf("%s[%d] is not wiped: %v", path, i, v.Index(i))
		}
	}
}

// points tells whether values of a type point to others.
func points(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.String, reflect.Interface:
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if points(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// TestScratchOfBurst sees that what a burst was written on is not kept for quiet rounds.
func TestScratchOfBurst(t *testing.T) {
	defer func(old *sync.Pool) { scratchPool = old }(scratchPool)
	scratchPool = new(sync.Pool)
	d := &scratch{demands: [3][]demand{make([]demand, 0, 1000)}}
	for _, wants := range []int{0, 1, 1000/maxOversize - 1} {
		if d.release(wants); scratchPool.Get() != nil {
			t.Errorf("scratch for 1,000 wants is kept after a round of %d", wants)
		}
	}
	kept := false
	for range 100 { // under the race detector a Pool loses some of what it is given
		d.release(1000/maxOversize + 1)
		kept = kept || scratchPool.Get() == d
	}
	if !kept {
		t.Error("it is not kept after a round that needs it")
	}
}
