package externalgrpc

import (
	"context"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// question is a call that tells of a group what only an operator changes.
type question struct {
	method string
	group  cluster.GroupID
}

// answer is what the plug-in answered: a message, which is never changed, or that it does not
// implement the method.
type answer struct {
	at      time.Time
	message any
	err     error
}

// answersFor is how long an answer is kept at most.
const answersFor = time.Hour

// repeatedly makes a call, or repeats its last answer as far as provider.WithRepeated allows.
func repeatedly[T any](ctx context.Context, p *Provider, q question, call func() (T, error)) (T, error) {
	p.mu.Lock()
	last, known := p.answers[q]
	p.mu.Unlock()
	if message, ok := last.message.(T); known && ok && p.now().Sub(last.at) < provider.Repeated(ctx) {
		return message, last.err
	}
	at := p.now()
	message, err := call()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || unimplemented(err) {
		p.answers[q] = answer{at, message, err}
	} else {
		delete(p.answers, q)
	}
	return message, err
}
