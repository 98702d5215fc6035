package worlds

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Question is what a peer is asked: a cluster with waiting pods, as one line of JSON.
type Question struct {
	Seed        uint64               `json:"seed"`
	Groups      []PeerGroup          `json:"groups"`
	Nodes       []*corev1.Node       `json:"nodes"`     // all Ready
	NodeGroup   map[string]string    `json:"nodeGroup"` // the group's ID by the node's name; a name without a Node is a machine that was ordered
	Bound       []*corev1.Pod        `json:"bound"`
	Waiting     []*corev1.Pod        `json:"waiting"` // in the order of kube-scheduler's queue
	ReplicaSets []*appsv1.ReplicaSet `json:"replicaSets"`
}

// PeerGroup is a node group.
type PeerGroup struct {
	ID     string       `json:"id"`
	Pool   string       `json:"pool"`
	Zone   string       `json:"zone"`
	Price  float64      `json:"price"` // of a machine, in dollars an hour
	Target int          `json:"target"`
	Node   *corev1.Node `json:"node"` // the template
}

// Answer is what a peer buys, as one line of JSON.
type Answer struct {
	Machines []int   `json:"machines"`  // by group, in the order of the question
	Millis   float64 `json:"cpuMillis"` // processor time
	Error    string  `json:"error"`     // why it has no answer, or what it says of pods that nothing helps
}

// Peer is a program that buys, such as another autoscaler's own code.
type Peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartPeer starts a program that reads Questions and writes Answers. Close ends it.
func StartPeer(ctx context.Context, program string) (*Peer, error) {
	p := &Peer{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start peer %s: %w", program, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start peer %s: %w", program, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start peer %s: %w", program, err)
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	return p, nil
}

// Close ends the program.
func (x *Peer) Close() error {
	x.in.Close()
	return x.cmd.Wait()
}

// Buy buys what the program answers. It is a buyer; the program's failure ends the play.
func (x *Peer) Buy(p *player, waiting []*corev1.Pod) []int {
	a, err := x.ask(p.question(waiting))
	switch {
	case err != nil:
		p.failed = fmt.Errorf("peer %s: %w", x.cmd.Path, err)
	case len(a.Machines) != len(p.w.Groups):
		p.failed = fmt.Errorf("peer %s answers for %d of %d groups: %s", x.cmd.Path, len(a.Machines), len(p.w.Groups), a.Error)
	case a.Error != "":
		p.result.Said += a.Error + "; "
	}
	if p.failed != nil {
		return nil
	}
	p.decided = time.Duration(a.Millis * float64(time.Millisecond))
	return a.Machines
}

func (x *Peer) ask(q *Question) (a Answer, err error) {
	err = x.Exchange(q, &a)
	return a, err
}

// Exchange writes a question as one line of JSON and reads the answer.
func (x *Peer) Exchange(question, answer any) error {
	if err := json.NewEncoder(x.in).Encode(question); err != nil {
		return err
	}
	line, err := x.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, answer)
}

// question is the world as a peer sees it.
func (p *player) question(waiting []*corev1.Pod) *Question {
	q := &Question{Seed: p.seed, Nodes: p.w.Nodes, NodeGroup: make(map[string]string), Bound: p.w.Bound, Waiting: waiting, ReplicaSets: p.w.ReplicaSets}
	for g := range p.w.Groups {
		group := &p.w.Groups[g]
		template := (&World{Groups: []cluster.NodeGroup{*group}}).join(0, string(group.ID)+"-template", start)
		q.Groups = append(q.Groups, PeerGroup{ID: string(group.ID), Pool: p.w.Pool[g], Zone: p.w.Zone[g], Price: group.Price, Target: group.Target, Node: template})
		for _, i := range group.Instances {
			q.NodeGroup[i.Names[0]] = string(group.ID)
		}
	}
	return q
}
