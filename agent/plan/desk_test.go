package plan

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/plantest"
)

// TestDesk decides one world after the other on one desk: what was written there before
// must not show, what is written there later must not change an answer that was given,
// and nothing of a round stays there.
func TestDesk(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	defer func(old *sync.Pool) { desks = old }(desks)
	one := new(desk)
	type answer struct {
		plan   Plan
		memory Memory
		text   []byte
	}
	var given []answer
	uses, most := 0, 0
	for i := range 30 * times {
		s, m, p := someWorld(r)
		if i%5 == 0 {
			s, m, p = plantest.KarpenterMix(t0, 5+r.IntN(15), 1+r.IntN(9)), Memory{}, packPolicy()
		}
		desks = &sync.Pool{New: func() any { return new(desk) }}
		want, wantMemory := Decide(s, m, p)
		desks = &sync.Pool{New: func() any { return one }}
		got, memory := Decide(s, m, p)
		desks.New = nil
		kept := desks.Get() == one
		a := answer{got, memory, append(text(t, got), text(t, memory)...)}
		if !bytes.Equal(a.text, append(text(t, want), text(t, wantMemory)...)) {
			t.Fatalf("round %d: on a used desk\n%s\non a new one\n%s", i, got, want)
		}
		given = append(given, a)
		if uses++; !kept {
			one, uses = new(desk), 0
		}
		most = max(most, uses)
		empty(t, reflect.ValueOf(one).Elem(), "desk")
	}
	if most < 3 {
		t.Errorf("no desk was used more than %d times: the test shows little", most)
	}
	for i, a := range given {
		if !bytes.Equal(a.text, append(text(t, a.plan), text(t, a.memory)...)) {
			t.Errorf("the answer of round %d was written over: %s", i, a.plan)
		}
	}
}

// empty complains of pointers in what a desk lends.
func empty(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "free": // the rest of a board
			case "boards":
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

// TestDeskOfBurst sees that what a burst was written on is not kept for quiet rounds.
func TestDeskOfBurst(t *testing.T) {
	defer func(old *sync.Pool) { desks = old }(desks)
	desks = new(sync.Pool)
	d := &desk{wants: [3][]want{make([]want, 0, 1000)}}
	for _, wants := range []int{0, 1, 1000/muchLarger - 1} {
		if d.leave(wants); desks.Get() != nil {
			t.Errorf("a desk for 1,000 wants is kept after a round of %d", wants)
		}
	}
	kept := false
	for range 100 { // under the race detector a Pool loses some of what it is given
		d.leave(1000/muchLarger + 1)
		kept = kept || desks.Get() == d
	}
	if !kept {
		t.Error("it is not kept after a round that needs it")
	}
}
