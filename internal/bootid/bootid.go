// Package bootid says which boot of which machine this is.
//
// Small and apart: the nodecleaner knows its own Node by it, and the Lease tells agents of one name apart. It refuses to make an ID up: one that
// is not known is empty.
package bootid

import (
	"os"
	"strings"
)

// variable is how the unit hands the ID over (systemd's %b): with ProcSubset=pid the service has no /proc/sys.
const variable = "BOOT_ID"

// Read returns the boot ID as the kubelet reports it in its Node; empty: it is not known.
func Read() string {
	id := os.Getenv(variable)
	if id == "" {
		data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // what cannot be read is empty
		id = string(data)
	}
	id = strings.ReplaceAll(strings.TrimSpace(id), "-", "")
	if len(id) != 32 {
		return ""
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
