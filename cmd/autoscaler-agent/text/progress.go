package text

import (
	"fmt"
	"io"
	"time"
)

// Progress says on a terminal what a command that takes longer than a second is doing, and for
// how long. The function that it returns takes the line away again. A pipe gets nothing.
func Progress(out io.Writer, what string) (stop func()) {
	if Columns(out) == 0 {
		return func() {}
	}
	tick := time.NewTicker(time.Second)
	end := progress(out, what, tick.C)
	return func() {
		tick.Stop()
		end()
	}
}

// progress writes one line anew at each tick.
func progress(out io.Writer, what string, tick <-chan time.Time) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for seconds := 1; ; seconds++ {
			select {
			case <-end:
				if seconds > 1 {
					fmt.Fprint(out, "\r\x1b[K") // back to the start, and erase the line (ECMA-48 EL)
				}
				return
			case <-tick:
				fmt.Fprintf(out, "\r%s, %ds", what, seconds)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
