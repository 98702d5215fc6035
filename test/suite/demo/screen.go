package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen shows progress. On a terminal the current status is one line that is
// rewritten; piped, a status is printed when it changed and at most every two
// seconds, so that a log file stays readable.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	tty     bool
	start   time.Time
	status  string    // what the status line shows now
	printed time.Time // when a status was last written to a pipe
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, start: time.Now()}
	if f, ok := out.(*os.File); ok {
		if st, err := f.Stat(); err == nil {
			s.tty = st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
		}
	}
	return s
}

func (s *screen) stamp() string {
	return fmt.Sprintf("%6.1fs", time.Since(s.start).Seconds())
}

// Step prints a line that stays.
func (s *screen) Step(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, "%s  %s\n", s.stamp(), fmt.Sprintf(format, args...))
	s.printed = time.Time{}
	s.status = ""
}

// Status replaces the current status.
func (s *screen) Status(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty {
		s.clear()
		fmt.Fprintf(s.out, "%s  %s", s.stamp(), line)
		s.status = line
		return
	}
	if line == s.status || time.Since(s.printed) < 2*time.Second {
		return
	}
	s.status, s.printed = line, time.Now()
	fmt.Fprintf(s.out, "%s    %s\n", s.stamp(), line)
}

// Write lets programs that report progress by lines (the control-plane build) speak
// through the screen.
func (s *screen) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			s.Step("%s", line)
		}
	}
	return len(p), nil
}

func (s *screen) clear() {
	if s.tty && s.status != "" {
		fmt.Fprint(s.out, "\r\x1b[2K")
	}
}

// bar draws done of all as a bar of the given width.
func bar(done, all, width int) string {
	if all <= 0 {
		return strings.Repeat(".", width)
	}
	n := min(done*width/all, width)
	return strings.Repeat("#", n) + strings.Repeat(".", width-n)
}

// table renders rows of two columns, aligned.
func table(w io.Writer, title string, rows [][2]string) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r[0]))
	}
	fmt.Fprintf(w, "\n%s\n%s\n", title, strings.Repeat("-", len(title)))
	for _, r := range rows {
		fmt.Fprintf(w, "  %-*s  %s\n", wide, r[0], r[1])
	}
}
