package bootid

import (
	"os"
	"strings"
	"testing"
)

// TestRead: the unit's form and the kernel's are one; anything else is no ID.
func TestRead(t *testing.T) {
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(kernel))
	for _, c := range []struct{ unit, want string }{{"", want}, {strings.ReplaceAll(want, "-", ""), want}, {want, want}, {"%b", ""}} {
		t.Setenv(variable, c.unit)
		if got := Read(); got != c.want {
			t.Errorf("the unit says %q: %q, want %q", c.unit, got, c.want)
		}
	}
}
