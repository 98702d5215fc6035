package decision

import (
	"testing"
	"time"
)

func TestDrainOrderIsRead(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0:60,1000:120": 2, "1000:120, 0:60": 2, "-10:5": 1, "0": -1, "0:60,0:30": -1, "0:-1": -1, "a:1": -1, "0:1m": -1} {
		var o DrainOrder
		err := o.Decode(text)
		if (err != nil) != (want < 0) || err == nil && len(o) != want {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
	var o DrainOrder
	if err := o.Decode("1000:120,0:60"); err != nil || o[0] != (DrainStep{0, time.Minute}) || o[1].Grace != 2*time.Minute {
		t.Errorf("%v, %v", o, err)
	}
}

func TestBoundsAreRead(t *testing.T) {
	for text, want := range map[string]int{"": 0, "nvidia.com/gpu:0:16": 1, "nvidia.com/gpu:0:16, amd.com/gpu:2:8": 2, "gpu": -1, "gpu:4:2": -1, "gpu:-1:2": -1, ":0:1": -1, "gpu:0:x": -1} {
		var b Bounds
		err := b.Decode(text)
		if (err != nil) != (want < 0) || err == nil && len(b) != want {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}
