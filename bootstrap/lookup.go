package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Minted is what is known of a token by its ID.
type Minted struct {
	// Problem says why the token is not one of the agent's own that lives; empty: it is.
	Problem string
	// Instance is the provider ID of the one machine that it was made for; empty: any.
	Instance string
	// Machine is the name of the one machine that it was made for; empty: any.
	Machine string
	// Key is the hash of the one public key that it was made for, in hex; empty: any.
	Key string
	// Made is when; IDs are used again, and a request that is older came with another token.
	Made time.Time
}

// Lookup reads a token by its ID. An error means that nothing is known about it.
func Lookup(ctx context.Context, client *kube.Client, id string) (Minted, error) {
	if !idPattern.MatchString(id) {
		return Minted{Problem: "the requester's token has no sound ID"}, nil
	}
	s, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+id, metav1.GetOptions{})
	if apierrors.IsForbidden(err) && !inPool(id) {
		return Minted{Problem: fmt.Sprintf("token %s is not of the agent's own names (%s to %s): user data of an older version has to be rendered anew",
			id, poolID(0), poolID(poolSize-1))}, nil
	}
	if apierrors.IsNotFound(err) {
		return Minted{Problem: fmt.Sprintf("token %s is not there any more", id)}, nil
	}
	if err != nil {
		return Minted{}, fmt.Errorf("look up token %s: %w", id, err)
	}
	return judged(s, id, time.Now()), nil
}

func judged(s *corev1.Secret, id string, now time.Time) Minted {
	if s.Labels[TokenLabel] == "" {
		return Minted{Problem: fmt.Sprintf("token %s was not minted by the agent (label %s)", id, TokenLabel)}
	}
	if why := usable(s, now, Config{}); why != "" {
		return Minted{Problem: fmt.Sprintf("token %s cannot be used: %s", id, why)}
	}
	return Minted{Instance: s.Annotations[InstanceAnnotation], Machine: s.Annotations[MachineAnnotation], Key: s.Annotations[KeyAnnotation], Made: s.CreationTimestamp.Time}
}
