package bootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// StandingAnnotation marks a token that an operator has asked for: it stays until it ends.
const StandingAnnotation = "autoscaler-agent/standing"

// onDemand tells whether the service keeps a token only while machines come.
func (s *Service) onDemand() bool { return s.cfg.Tokens == TokensGrowth || s.cfg.Tokens == TokensNone }

// coming asks for the machines that have not joined. Where tokens are for single machines
// only, none comes for the published one.
func (s *Service) coming() Coming {
	if s.cfg.Tokens == TokensNone || s.deps.Coming == nil {
		return Coming{}
	}
	return s.deps.Coming()
}

// tokenOnDemand brings the tokens to where the growth wants them, and returns the one to
// publish; nil: none.
func (s *Service) tokenOnDemand(ctx context.Context) (*corev1.Secret, error) {
	list, free, err := s.published(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the join token: %w", err)
	}
	now := time.Now()
	if leads, _ := s.deps.MayAct(); !leads {
		return choose(list, now, s.cfg), nil
	}
	if err := s.limit(ctx, list, now); err != nil {
		return nil, err
	}
	coming := s.coming()
	s.wanted = coming.Machines > 0
	if s.wanted || s.lastWanted.IsZero() {
		s.lastWanted = now
	}
	byName := map[string]*corev1.Secret{}
	slots := make([]slot, 0, len(list))
	for i := range list {
		t := &list[i]
		byName[t.Name] = t
		slots = append(slots, slot{Name: t.Name, Made: t.CreationTimestamp.Time, Ends: expires(t), Dead: usable(t, now, Config{}) != "", Standing: t.Annotations[StandingAnnotation] != ""})
	}
	todo := onDemand(slots, coming, s.lastWanted, now)
	return s.carryOut(ctx, todo, byName, free, now)
}

// carryOut does what was decided: first what machines need, then what nobody needs.
func (s *Service) carryOut(ctx context.Context, todo todo, byName map[string]*corev1.Secret, free []string, now time.Time) (*corev1.Secret, error) {
	for _, name := range todo.Renew {
		renewed, err := s.renew(ctx, byName[name], now)
		if err != nil {
			return nil, err
		}
		byName[name] = renewed
	}
	current := byName[todo.Current]
	if todo.Mint && len(free) > 0 {
		made, err := s.makeToken(ctx, free, now)
		if err != nil {
			return nil, err
		}
		current = made
	}
	for _, name := range todo.Delete {
		id := string(byName[name].Data[keyID])
		if err := remove(ctx, s.deps.Client, byName[name]); err != nil {
			return nil, fmt.Errorf("delete join token %s: %w", id, err)
		}
		free = append(free, name[len(secretPrefix):])
		s.log.WithFields(logrus.Fields{"token": id, "why": "no machine that needs it is coming"}).Info("join token deleted")
		s.count("bootstrap_tokens_total", "what", "deleted")
	}
	if todo.Mint && current == nil {
		return s.makeToken(ctx, free, now)
	}
	return current, nil
}

// standing makes a token that an operator has asked for.
func standing(id string, now time.Time, cfg Config) (*corev1.Secret, error) {
	t, err := mint(id, now, cfg)
	if err != nil {
		return nil, err
	}
	t.Annotations = map[string]string{StandingAnnotation: "true"}
	t.Data[keyDescription] = []byte("autoscaler-agent: asked for by an operator; it is not renewed")
	return t, nil
}
