package cluster

import (
	"encoding/json"
	"testing"
	"time"
)

// TestRepairConditions: what is read is what is written, in a setting and in a recording; what it cannot be is refused.
func TestRepairConditions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "null",
		"KernelDeadlock,ReadonlyFilesystem":   `["KernelDeadlock","ReadonlyFilesystem"]`,
		"Ready=False:10m, DiskPressure:30m":   `["Ready=False:10m0s","DiskPressure:30m0s"]`,
		"Ready=Unknown:1h,example.net/S=True": `["Ready=Unknown:1h0m0s","example.net/S"]`,
	} {
		var got, again RepairConditions
		if err := got.Decode(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		out, _ := json.Marshal(got)
		if err := json.Unmarshal(out, &again); string(out) != want || err != nil || len(again) != len(got) {
			t.Errorf("%q: %s, want %s; read again: %v %v", text, out, want, again, err)
		}
	}
	for _, text := range []string{"Ready", "Ready=True:10m", "Ready=False", "Ready:10m", "DiskPressure=False", "Disk Pressure", "!!", "a=b", "Disk:soon", "Disk:1s", "Disk:9000h", "Disk:", "A,A:5m", "a/b/c", ":10m"} {
		var got RepairConditions
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestCheckpointsAsSettings(t *testing.T) {
	var got Checkpoints
	if err := got.Decode(" 50%:4h, 10%:1h"); err != nil || len(got) != 2 || got[0] != (Checkpoint{10, time.Hour}) || got[1] != (Checkpoint{50, 4 * time.Hour}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"10", "10%", "10:1h", "0%:1h", "100%:1h", "10%:1s", "10%:soon", "a%:1h", "10%:1h,10%:2h", "10%:-1h"} {
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
