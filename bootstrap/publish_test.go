package bootstrap

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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

// TestNothingIsPublishedWithAForgedSignature: a signature of cluster-info that does not verify
// with the token keeps the join values from the file and from every sink.
func TestNothingIsPublishedWithAForgedSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holder{}
		bubble(t, "https://api.example.com:6443", func(_ *Config, d *Deps) { d.Sinks = []Sink{h} }, func(client *fake.Clientset, s *Service) {
			info, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Fatal(len(list.Items), err)
			}
			forged := list.Items[0]
			forged.Data = maps.Clone(forged.Data)
			forged.Data[keySecret] = []byte("0123456789abcdef")
			info.Data["jws-kubeconfig-"+string(forged.Data[keyID])] = signature(forged, info.Data["kubeconfig"])
			if _, err := client.CoreV1().ConfigMaps("kube-public").Update(t.Context(), info, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			wait(10 * time.Minute)
			if _, err := os.Stat(s.cfg.File); err == nil || h.written != 0 {
				t.Errorf("published: the file %v, the sink %d times", err == nil, h.written)
			}
			sign(t, client)
			wait(2 * time.Minute)
			if _, err := os.Stat(s.cfg.File); err != nil || h.written != 1 {
				t.Errorf("not published: %v, the sink %d times", err, h.written)
			}
		})
	})
}
