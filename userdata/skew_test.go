package userdata

import (
	"fmt"
	"strings"
	"testing"
)

// TestSkew goes through every pair of minors around those that the agent knows: a kubelet joins
// where Kubernetes allows it. The versions that a refusal names would all be taken.
func TestSkew(t *testing.T) {
	for server := OldestMinor - 3; server <= NewestMinor+6; server++ {
		for kubelet := OldestMinor; kubelet <= NewestMinor; kubelet++ {
			fits := kubelet <= server && kubelet >= server-3
			why := Skew(kubelet, server)
			if (why == "") != fits {
				t.Errorf("kubelet 1.%d, API server 1.%d: %q", kubelet, server, why)
			}
			if fits {
				continue
			}
			var oldest, newest int
			_, names, _ := strings.Cut(why, "; install ")
			if n, _ := fmt.Sscanf(names, "one of 1.%d to 1.%d", &oldest, &newest); n == 0 {
				if n, _ := fmt.Sscanf(names, "1.%d", &oldest); n == 1 {
					newest = oldest
				}
			}
			named := map[int]bool{}
			for m := oldest; m <= newest && newest > 0; m++ {
				named[m] = true
			}
			for m := OldestMinor; m <= NewestMinor; m++ {
				if named[m] != (Skew(m, server) == "") {
					t.Errorf("API server 1.%d: 1.%d is named: %t: %s", server, m, named[m], why)
				}
			}
			if len(named) == 0 && !strings.Contains(why, "none of which fits") {
				t.Errorf("no remedy: %s", why)
			}
		}
	}
}
