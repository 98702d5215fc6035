package await

import (
	"os"
	"regexp"
	"strconv"
	"time"
)

// elapsed is the time that a wait has taken.
type elapsed struct {
	began   time.Time
	stalled time.Duration
}

func begin() elapsed { return elapsed{time.Now(), stalled()} }

// over tells that the wait is taken for a hang.
func (e elapsed) over() bool {
	wall := time.Since(e.began)
	return wall > Limit && counted(wall, stalled()-e.stalled) > Limit
}

// counted is the time that counts of a wait in which processes waited for a processor for so long.
func counted(wall, stalled time.Duration) time.Duration {
	return wall - min(max(stalled, 0), wall)*3/4
}

var someCPU = regexp.MustCompile(`(?m)^some .* total=([0-9]+)$`)

// stalled is for how long, since the host was started, some process waited for a processor: Linux's pressure
// stall information. A host that has none counts as idle.
func stalled() time.Duration {
	text, _ := os.ReadFile("/proc/pressure/cpu") // where it is not there, there is nothing to read
	return parseStalled(string(text))
}

func parseStalled(text string) time.Duration {
	m := someCPU.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // digits
	return time.Duration(n) * time.Microsecond
}
