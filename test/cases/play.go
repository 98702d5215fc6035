package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// clusterName is that of the tag by which the agent finds its groups.
const clusterName = "case"

// maxRounds bounds the plans of a case: an agent that buys at each of them has been seen by then.
const maxRounds = 4

// scene is one case under way.
type scene struct {
	t     *Table
	c     Case
	out   io.Writer
	cloud *aws.Cloud
	dir   string
	env   []string

	nodes   []string        // names, by number
	young   []string        // those that are not ready yet
	left    map[string]bool // machines that the file leaves without a Node
	created []unstructured.Unstructured
	said    strings.Builder // what was printed
	phases  sync.WaitGroup
	ended   chan struct{}

	mu     sync.Mutex
	made   map[string]string // Node by instance
	faults []string
}

// Play plays a case, prints what came of it, and returns what is not as the case wants it. The
// error is one of the player or of the file.
func (t *Table) Play(ctx context.Context, c Case, out io.Writer) (faults []string, err error) {
	t.played++
	s := &scene{t: t, c: c, out: out, dir: filepath.Join(t.dir, fmt.Sprintf("case-%d", t.played)),
		left: map[string]bool{}, made: map[string]string{}, ended: make(chan struct{})}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("play %s: %w", c.Name, err)
	}
	err = s.play(ctx)
	close(s.ended)
	s.phases.Wait()
	err = errors.Join(err, s.clear(context.WithoutCancel(ctx)))
	if s.cloud != nil {
		s.cloud.Close()
	}
	if err != nil {
		return s.faults, fmt.Errorf("play %s: %w", c.Name, err)
	}
	return s.faults, nil
}

func (s *scene) play(ctx context.Context) error {
	s.say("%s: %s", s.c.Name, s.c.Title)
	if err := s.startCloud(); err != nil {
		return err
	}
	if err := s.environment(); err != nil {
		return err
	}
	if err := s.launched(ctx); err != nil {
		return err
	}
	if err := s.joinListed(ctx); err != nil {
		return err
	}
	for _, g := range s.c.Groups {
		for _, i := range s.waiting(g.Name) {
			s.left[i.ID] = true
		}
	}
	for i, o := range s.c.Objects {
		if i > 0 && s.c.Objects[i-1].Stage != o.Stage {
			if err := s.settle(ctx); err != nil {
				return err
			}
		}
		if err := s.create(ctx, o.Body); err != nil {
			return err
		}
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	for i, st := range s.c.Steps {
		if err := s.step(ctx, st); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		if st.Look != nil {
			s.say("after step %d:", i+1)
			if _, err := s.look(ctx, st.Look); err != nil {
				return fmt.Errorf("steps[%d].look: %w", i, err)
			}
		}
	}
	return s.finish(ctx)
}

// finish makes the plans that buy, or lets the agent run, and compares.
func (s *scene) finish(ctx context.Context) error {
	want := s.c.Want
	if want == nil {
		want = &Want{}
	}
	if err := s.bound(ctx); err != nil {
		return err
	}
	before, err := s.pods(ctx)
	if err != nil {
		return err
	}
	buys, err := s.look(ctx, &want.Look)
	if err != nil {
		return err
	}
	if want.Run.Duration > 0 {
		err = s.run(ctx, want.Run.Duration)
	} else {
		err = s.buy(ctx, buys, want.Rounds)
	}
	if err != nil {
		return err
	}
	return s.compare(ctx, want, before)
}

// buy lets the machines join that a plan buys, and makes the next plan, until one buys nothing.
func (s *scene) buy(ctx context.Context, buys map[string]int, want *int) error {
	rounds := 0
	for ; len(buys) > 0 && rounds < maxRounds; rounds++ {
		for _, group := range slices.Sorted(maps.Keys(buys)) {
			if err := s.resize(ctx, group, buys[group]); err != nil {
				return err
			}
		}
		if err := s.joinNew(ctx); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		s.say("kube-scheduler, with %d nodes:", len(s.nodes))
		if err := s.bound(ctx); err != nil {
			return err
		}
		var err error
		if buys, err = s.decide(ctx, nil); err != nil {
			return err
		}
	}
	if len(buys) > 0 {
		s.fault("rounds: %d plans in a row bought machines", rounds+1)
	}
	if want != nil && rounds != *want {
		s.fault("rounds: %d plans bought machines, want %d", rounds, *want)
	}
	return nil
}

// environment is the agent's configuration: what an operator has to say, and the case's own.
func (s *scene) environment() error {
	groupsFile := filepath.Join(s.dir, "groups.yaml")
	s.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "AUTOSCALER_KUBECONFIG=" + s.t.kubeconfig, "AUTOSCALER_NODE_NAME=leader",
		"AUTOSCALER_STATE_DIR=" + filepath.Join(s.dir, "state"), "AUTOSCALER_SOCKET=" + filepath.Join(s.dir, "agent.sock"),
		"AUTOSCALER_LISTEN=127.0.0.1:0", "AUTOSCALER_PROVIDER=asg", "AUTOSCALER_GROUPS_FILE=" + groupsFile,
		"AUTOSCALER_BOOTSTRAP_FILE=" + filepath.Join(s.dir, "worker.env"), "AUTOSCALER_AWS_CLUSTER_NAME=" + clusterName,
	}, s.cloud.Env()...)
	for _, name := range slices.Sorted(maps.Keys(s.c.Env)) {
		s.env = append(s.env, name+"="+s.c.Env[name])
	}
	if s.c.GroupsFile == nil {
		return os.WriteFile(groupsFile, []byte("{}"), 0o600) // a file that is named has to exist
	}
	text, err := json.Marshal(s.c.GroupsFile) // JSON is YAML
	if err != nil {
		return fmt.Errorf("groupsfile: %w", err)
	}
	return os.WriteFile(groupsFile, text, 0o600)
}

// say prints a line and keeps it for the comparisons.
func (s *scene) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintln(&s.said, line)
	fmt.Fprintln(s.out, line)
}

// fault notes that something is not as the case wants it.
func (s *scene) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}
