package bootstrap

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// holder is a sink that somebody else writes to.
type holder struct {
	held    string
	asked   int
	written int
	fails   bool
}

func (h *holder) Name() string { return "holder" }

func (h *holder) Publish(_ context.Context, j Join) error {
	h.held, h.written = j.Token, h.written+1
	return nil
}

func (h *holder) Holds(_ context.Context, j Join) (bool, error) {
	h.asked++
	if h.fails {
		return false, errors.New("it does not answer")
	}
	return h.held == j.Token, nil
}

// TestHolder: a sink that can tell is asked once in a while, and written again where it no
// longer holds what was published. One that cannot be asked is left alone.
func TestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holder{}
		log := logrus.New()
		log.SetOutput(io.Discard)
		s := New(Config{}, Deps{Log: log.WithField("service", "bootstrap"), Sinks: []Sink{h}})
		round := func(after time.Duration) {
			t.Helper()
			time.Sleep(after)
			if err := s.sink(t.Context(), join(), "values"); err != nil {
				t.Fatal(err)
			}
		}
		round(0)
		round(time.Minute)
		if h.written != 1 || h.asked != 0 {
			t.Fatalf("written %d times, asked %d times", h.written, h.asked)
		}
		h.held = "a person's"
		round(holdsEvery)
		if h.written != 2 || h.asked != 1 || h.held != join().Token {
			t.Errorf("written %d times, asked %d times, it holds %q", h.written, h.asked, h.held)
		}
		round(holdsEvery)
		h.fails, h.held = true, "a person's"
		round(holdsEvery)
		round(time.Second)
		if h.written != 2 || h.asked != 3 {
			t.Errorf("written %d times, asked %d times", h.written, h.asked)
		}
	})
}
