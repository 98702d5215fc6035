package nodecleaner

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Lease of a cloud controller manager (k8s.io/cloud-provider's own default name,
// which the ones for AWS and OpenStack keep), and how often it is looked at.
const (
	ccmNamespace = "kube-system"
	ccmLease     = "cloud-controller-manager"
	ccmEvery     = 30 * time.Second
	ccmFresh     = time.Minute
)

// neighbour is what is known of a cloud controller manager. Its node lifecycle
// controller deletes the Nodes of gone instances; where it works this service only
// says what it would do.
type neighbour struct {
	looked  time.Time // by our clock
	renewed time.Time // as its Lease says
	moved   time.Time // by our clock, when that was last seen to change
	holder  string
	fault   string // as last told
}

// coexist is C1: why deletions are the business of a working cloud controller manager;
// empty: there is none. Working is a Lease that is renewed; a Lease that stands still is
// what a removed one leaves behind.
func (s *Service) coexist(ctx context.Context, now time.Time) string {
	if s.cfg.CloudController == CloudControllerIgnore {
		return ""
	}
	c := &s.ccm
	if now.Sub(c.looked) >= ccmEvery || now.Before(c.looked) {
		s.lookAtNeighbour(ctx, now)
	}
	if c.moved.IsZero() || now.Sub(c.moved) >= ccmFresh {
		return ""
	}
	return fmt.Sprintf("a cloud controller manager is at work (%s renews Lease %s/%s): Nodes are its business (AUTOSCALER_NODECLEANER_CLOUD_CONTROLLER=ignore if its node controller does not do it)",
		c.holder, ccmNamespace, ccmLease)
}

func (s *Service) lookAtNeighbour(ctx context.Context, now time.Time) {
	c, first := &s.ccm, s.ccm.looked.IsZero()
	c.looked = now
	lease, err := s.deps.Client.CoordinationV1().Leases(ccmNamespace).Get(ctx, ccmLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.renewed, c.moved = time.Time{}, time.Time{}
		return
	case err != nil:
		if text := err.Error(); text != c.fault {
			c.fault = text
			s.log.WithField("why", text).Warn("it cannot be seen whether a cloud controller manager is at work (kubectl apply -f rbac.yaml)")
		}
		return
	case lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return
	}
	renewed := lease.Spec.RenewTime.Time
	switch {
	case !first && !c.renewed.IsZero() && !renewed.Equal(c.renewed):
		c.moved = now // whatever its clock says, it moves
	case first && now.Sub(renewed).Abs() < ccmFresh:
		c.moved = now
	}
	c.renewed, c.holder = renewed, *lease.Spec.HolderIdentity
}
