package externalgrpc

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// FuzzMessages: no bytes of a plug-in bring the agent down, and what cannot be read is
// an error.
func FuzzMessages(f *testing.F) {
	f.Add(options{utilization: 0.5, unneeded: time.Minute, ignoreDaemonSets: true}.write())
	f.Add(appendMessage(nil, 1, node("a", "b", map[string]string{"k": "v"})))
	f.Add([]byte{0x0a, 0x05, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		valid := true
		for rest := b; len(rest) > 0; {
			_, _, n := protowire.ConsumeField(rest)
			if n < 0 {
				valid = false
				break
			}
			rest = rest[n:]
		}
		_, e1 := readNodeGroups(b)
		_, e2 := readInstances(b)
		_, _, e3 := readOptions(b)
		_, e4 := readTemplate(b)
		_, e5 := readPrice(b)
		_, e6 := readTargetSize(b)
		for i, err := range []error{e1, e2, e3, e4, e5, e6} {
			if !valid && err == nil {
				t.Errorf("reader %d took a torn message", i)
			}
		}
	})
}

// TestDurationsInBothLayouts: an older plug-in reads and writes fields 3 to 5, a newer
// one 8 to 10; where both are, the newer ones hold.
func TestDurationsInBothLayouts(t *testing.T) {
	o := options{unneeded: 90 * time.Second, unready: 1500 * time.Millisecond, provision: time.Hour}
	var got options
	if err := got.read(o.write()); err != nil || got != o {
		t.Errorf("%+v, %v", got, err)
	}
	var old, both []byte
	old = appendMessage(old, 3, appendNumber(nil, 1, int64(time.Minute)))
	both = appendDuration(append(both, old...), 8, time.Hour)
	got = options{}
	if err := got.read(old); err != nil || got.unneeded != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	got = options{}
	if err := got.read(both); err != nil || got.unneeded != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
}
