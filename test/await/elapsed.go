package await

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Elapsed is the time that a wait has taken.
type Elapsed struct {
	began   time.Time
	stalled time.Duration
}

// Begin begins a wait.
func Begin() Elapsed { return Elapsed{time.Now(), stalled()} }

// Over tells that the wait is taken for a hang.
func (e Elapsed) Over(limit time.Duration) bool {
	wall := time.Since(e.began)
	return wall > limit && counted(wall, stalled()-e.stalled) > limit
}

// Said is how long it waited, and that the host was too busy where it was.
func (e Elapsed) Said() string { return said(time.Since(e.began), stalled()-e.stalled) }

func said(wall, stalled time.Duration) string {
	text := wall.Round(time.Second).String()
	if stalled > wall/2 {
		text += fmt.Sprintf(", of which processes waited for a processor %d %%: this host is too busy, try again when it has less to do", min(100, stalled*100/wall))
	}
	return text
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
