package nodecleaner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Leases of cloud controller managers, and how often they are looked at. ccmLease is
// the default of k8s.io/cloud-provider, which the managers for AWS, OpenStack, Azure,
// Hetzner and most others keep. Several managers in one cluster, one for each region, append
// a suffix to it; distributions put a prefix before it (k3s-cloud-controller-manager).
const (
	ccmNamespace = "kube-system"
	ccmLease     = "cloud-controller-manager"
	ccmAlibaba   = "ccm"
	ccmEvery     = 30 * time.Second
	ccmFresh     = time.Minute
)

// isCCM matches the Lease names of controllers that manage Nodes. Controllers of load
// balancers alone (kube-vip-cloud-controller) have other names.
func isCCM(lease string) bool { return strings.Contains(lease, ccmLease) || lease == ccmAlibaba }

// neighbours holds the Leases of cloud controller managers. Their node lifecycle controller
// deletes the Nodes of gone instances; while one works, this service only reports which
// Nodes it would delete.
type neighbours struct {
	looked time.Time // by our clock
	leases map[string]neighbour
	fault  string // as last told
}

type neighbour struct {
	renewed time.Time // as its Lease says
	moved   time.Time // by our clock, when that was last seen to change
	holder  string
}

// coexist is C1: it names the working cloud controller manager whose business deletions
// are; empty: there is none. A working manager renews its Lease; a removed one leaves a Lease
// behind that is not renewed.
func (s *Service) coexist(ctx context.Context, now time.Time) string {
	if s.cfg.CloudController == CloudControllerIgnore {
		return ""
	}
	c := &s.ccm
	if now.Sub(c.looked) >= ccmEvery || now.Before(c.looked) {
		s.lookAtNeighbours(ctx, now)
	}
	for _, name := range slices.Sorted(maps.Keys(c.leases)) {
		if n := c.leases[name]; !n.moved.IsZero() && now.Sub(n.moved) < ccmFresh {
			return fmt.Sprintf("a cloud controller manager is at work (%s renews Lease %s/%s): it deletes Nodes itself (AUTOSCALER_NODECLEANER_CLOUD_CONTROLLER=ignore if its node controller does not do it)",
				n.holder, ccmNamespace, name)
		}
	}
	return ""
}

func (s *Service) lookAtNeighbours(ctx context.Context, now time.Time) {
	c, first := &s.ccm, s.ccm.looked.IsZero()
	c.looked = now
	list, err := s.ccmLeases(ctx)
	if err != nil {
		if text := err.Error(); text != c.fault {
			c.fault = text
			s.log.WithField("why", text).Warn("it cannot be seen whether a cloud controller manager is at work (kubectl apply -f rbac.yaml)")
		}
		return
	}
	before := c.leases
	c.leases = map[string]neighbour{}
	for i := range list {
		lease := &list[i]
		if !isCCM(lease.Name) || lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			continue
		}
		renewed, old := lease.Spec.RenewTime.Time, before[lease.Name]
		n := neighbour{renewed: renewed, moved: old.moved, holder: *lease.Spec.HolderIdentity}
		switch {
		case !old.renewed.IsZero() && !renewed.Equal(old.renewed):
			n.moved = now // whatever its clock says, it moves
		case first && now.Sub(renewed).Abs() < ccmFresh:
			n.moved = now
		}
		c.leases[lease.Name] = n
	}
}

// ccmLeases returns the Leases of cloud controller managers in the namespace. With the
// rights of an older rbac.yaml it sees only the Lease with the usual name.
func (s *Service) ccmLeases(ctx context.Context) ([]coordinationv1.Lease, error) {
	leases := s.deps.Client.CoordinationV1().Leases(ccmNamespace)
	list, err := leases.List(ctx, metav1.ListOptions{})
	if err == nil {
		return list.Items, nil
	}
	one, other := leases.Get(ctx, ccmLease, metav1.GetOptions{})
	switch {
	case other == nil:
		return []coordinationv1.Lease{*one}, nil
	case apierrors.IsForbidden(err) && apierrors.IsNotFound(other):
		return nil, nil
	}
	return nil, err
}
