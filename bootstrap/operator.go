package bootstrap

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Listed is a token as an operator sees it: everything but its secret.
type Listed struct {
	ID string `json:"id"`
	// For is "published", "standing" (asked for by an operator), "machine", or "others":
	// cluster-info is signed with it, and the agent has not made it.
	For      string    `json:"for"`
	Instance string    `json:"instance,omitempty"`
	Machine  string    `json:"machine,omitempty"`
	Key      string    `json:"key,omitempty"` // that it is bound to
	Made     time.Time `json:"made,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	// Problem says why it cannot be used, or that it never expires.
	Problem string `json:"problem,omitempty"`
}

// NeverExpires is the problem of a token without an end.
const NeverExpires = "it never expires"

// List reads the agent's tokens, and names those of others that cluster-info is signed
// with. What of others the user may not read is said in their Problem.
func List(ctx context.Context, client *kube.Client, now time.Time) ([]Listed, error) {
	var out []Listed
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	for n := range poolSize {
		s, err := secrets.Get(ctx, secretPrefix+poolID(n), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("list join tokens: %w", err)
		default:
			out = append(out, listed(s, now))
		}
	}
	info, err := readClusterInfo(ctx, client)
	if err != nil {
		return out, err
	}
	for id := range info.signatures {
		if inPool(id) || !idPattern.MatchString(id) {
			continue
		}
		l := Listed{ID: id, For: "others"}
		switch s, err := secrets.Get(ctx, secretPrefix+id, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			continue // the signer follows in a moment
		case err != nil:
			l.Problem = "when it expires may not be read: kubeadm token list"
		default:
			l = listed(s, now)
			l.For = "others"
			if len(s.Data[keyExpiration]) == 0 {
				l.Problem = NeverExpires
			}
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b Listed) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func listed(s *corev1.Secret, now time.Time) Listed {
	l := Listed{ID: strings.TrimPrefix(s.Name, secretPrefix), For: "published", Instance: s.Annotations[InstanceAnnotation], Machine: s.Annotations[MachineAnnotation],
		Key: s.Annotations[KeyAnnotation], Made: s.CreationTimestamp.Time, Expires: expires(s), Problem: usable(s, now, Config{})}
	switch {
	case s.Labels[TokenLabel] == "":
		l.For, l.Problem = "others", "it stands under one of the agent's names, and is not the agent's"
	case s.Annotations[StandingAnnotation] != "":
		l.For = "standing"
	case s.Labels[TokenLabel] == machineLabelValue:
		l.For = "machine"
	}
	return l
}

// JudgeLife refuses a life that no token of an operator may have.
func JudgeLife(life time.Duration) error {
	if life < time.Minute || life > maxTokenTTL {
		return fmt.Errorf("write 1m to %s", maxTokenTTL)
	}
	return nil
}

// Create makes a token for an operator, which is good for life and is not renewed: for one
// instance, or for any machine that is expected. cfg has been validated.
func Create(ctx context.Context, client *kube.Client, cfg Config, instance string, life time.Duration) (token string, expiry time.Time, err error) {
	if err := JudgeLife(life); err != nil {
		return "", time.Time{}, fmt.Errorf("make a join token: its life is %s: %w", life, err)
	}
	cfg.TokenTTL = life
	make := func(id string) (*corev1.Secret, error) {
		t, err := standing(id, time.Now(), cfg)
		if err == nil && instance != "" {
			t.Labels[TokenLabel] = machineLabelValue
			t.Annotations[InstanceAnnotation] = instance
		}
		return t, err
	}
	var made *corev1.Secret
	if instance != "" {
		made, err = NewPool(client).make(ctx, make)
	} else {
		made, err = createPublished(ctx, client, make)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("make a join token: %w", err)
	}
	return string(made.Data[keyID]) + "." + string(made.Data[keySecret]), expires(made), nil
}

// standingSlots is how many of the IDs that may be published an operator can take: the
// service needs the others.
const standingSlots = publishedSlots / 2

// createPublished takes the last free ID of those that may be published: the service takes
// the first.
func createPublished(ctx context.Context, client *kube.Client, make func(id string) (*corev1.Secret, error)) (*corev1.Secret, error) {
	for n := publishedSlots - 1; n >= publishedSlots-standingSlots; n-- {
		t, err := make(poolID(n))
		if err != nil {
			return nil, err
		}
		made, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, t, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		return made, err
	}
	return nil, fmt.Errorf("there are %d such tokens, and no more can be: revoke one (autoscaler-agent token list)", standingSlots)
}

// Revoke deletes one of the agent's tokens, by its ID or by the whole token. A whole token whose secret is another
// one is refused: it is not the token that the agent has under this ID.
func Revoke(ctx context.Context, client *kube.Client, id string) error {
	typed := id
	id, secret, whole := strings.Cut(id, ".")
	if !inPool(id) {
		if idPattern.MatchString(id) {
			typed = id // without the secret that may follow
		}
		return fmt.Errorf("revoke join token: the agent has no token %q (its IDs are %s to %s); kubeadm token delete removes other tokens", typed, poolID(0), poolID(poolSize-1))
	}
	s, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+id, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("revoke join token %s: there is none", id)
	case err != nil:
		return fmt.Errorf("revoke join token %s: %w", id, err)
	case s.Labels[TokenLabel] == "":
		return errors.New("revoke join token " + id + ": it stands under one of the agent's names, and is not the agent's")
	case whole && subtle.ConstantTimeCompare([]byte(secret), s.Data[keySecret]) != 1:
		return fmt.Errorf("revoke join token %s: the token that the agent has under this ID has another secret; to revoke it all the same, give the ID alone", id)
	}
	if err := remove(ctx, client, s); err != nil {
		return fmt.Errorf("revoke join token %s: %w", id, err)
	}
	return nil
}
