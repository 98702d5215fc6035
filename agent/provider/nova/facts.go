package nova

import (
	"context"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// How long facts are believed. A flavor's numbers never change, its name may be given
// to another; an image's name is given to a newer one now and then.
const (
	keepFlavors = 5 * time.Minute
	keepImage   = time.Minute
	keepNames   = 10 * time.Minute
)

// fact is something that changes rarely: a flavor, an image, a network's ID.
type fact struct {
	value any
	until time.Time
}

// remembered returns a fact that is young enough, or reads it anew.
func remembered[T any](s *site, key string, keep time.Duration, read func() (T, error)) (T, error) {
	s.mu.Lock()
	f, ok := s.facts[key]
	s.mu.Unlock()
	if ok && s.now().Before(f.until) {
		return f.value.(T), nil
	}
	value, err := read()
	if err == nil {
		s.mu.Lock()
		s.facts[key] = fact{value, s.now().Add(keep)}
		s.mu.Unlock()
	}
	return value, err
}

// forget drops every fact: a request that was built from them was refused.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.facts)
}

// allFlavors lists the flavors that the project may use.
func (s *site) allFlavors(ctx context.Context) ([]flavors.Flavor, error) {
	return remembered(s, "flavors", keepFlavors, func() ([]flavors.Flavor, error) {
		c, _, err := s.nova(ctx)
		if err != nil {
			return nil, err
		}
		all, err := openstack.List[flavors.Flavor](ctx, flavors.ListDetail(c, nil), "flavors")
		return all, s.outdated(err)
	})
}

// flavor finds a flavor by its ID or by its name.
func (s *site) flavor(ctx context.Context, name string) (flavors.Flavor, error) {
	all, err := s.allFlavors(ctx)
	if err != nil {
		return flavors.Flavor{}, err
	}
	for _, by := range []func(flavors.Flavor) bool{func(f flavors.Flavor) bool { return f.ID == name }, func(f flavors.Flavor) bool { return f.Name == name }} {
		if i := slices.IndexFunc(all, by); i >= 0 {
			return all[i], nil
		}
	}
	s.mu.Lock()
	delete(s.facts, "flavors") // it may have been made since the list was read
	s.mu.Unlock()
	return flavors.Flavor{}, invalidRequest("the project has no flavor %q: `openstack flavor list` shows its flavors", name)
}

// image finds an image by its ID or by its name. Of several images of one name it is the
// newest active one: an operator who uploads an image under an old name means the new one.
func (s *site) image(ctx context.Context, name string) (images.Image, error) {
	return remembered(s, "image "+name, keepImage, func() (images.Image, error) {
		c, err := s.service(ctx, "image")
		if err != nil {
			return images.Image{}, err
		}
		if openstack.UUID(name) != "" {
			one, err := images.Get(ctx, c, name).Extract()
			if missing(err) {
				err = invalidRequest("there is no image %q: `openstack image list` shows those that there are", name)
			}
			if err == nil && (one == nil || one.ID == "") {
				err = errHollow
			}
			if err != nil {
				return images.Image{}, err
			}
			return *one, nil
		}
		list, err := openstack.List[images.Image](ctx, images.List(c, images.ListOpts{Name: name}), "images")
		if err != nil {
			return images.Image{}, err
		}
		list = slices.DeleteFunc(list, func(one images.Image) bool { return one.Status != images.ImageStatusActive })
		if len(list) == 0 {
			return images.Image{}, invalidRequest("there is no active image %q: `openstack image list` shows those that there are", name)
		}
		return slices.MaxFunc(list, func(a, b images.Image) int { return a.CreatedAt.Compare(b.CreatedAt) }), nil
	})
}

// property is a text among an image's own properties, which gophercloud has no field for.
func property(img images.Image, name string) string {
	text, _ := img.Properties[name].(string)
	return text
}

// networkID finds a network by its ID or by its name.
func (s *site) networkID(ctx context.Context, name string) (string, error) {
	return s.byName(ctx, "network", name, func() (ids []string, err error) {
		c, err := s.service(ctx, "network")
		if err != nil {
			return nil, err
		}
		list, err := openstack.List[networks.Network](ctx, networks.List(c, networks.ListOpts{Name: name}), "networks")
		for _, n := range list {
			ids = append(ids, n.ID)
		}
		return ids, err
	})
}

// securityGroupID finds a security group by its ID or by its name.
func (s *site) securityGroupID(ctx context.Context, name string) (string, error) {
	return s.byName(ctx, "security-group", name, func() (ids []string, err error) {
		c, err := s.service(ctx, "network")
		if err != nil {
			return nil, err
		}
		list, err := openstack.List[groups.SecGroup](ctx, groups.List(c, groups.ListOpts{Name: name}), "security_groups")
		for _, g := range list {
			ids = append(ids, g.ID)
		}
		return ids, err
	})
}

// byName returns the one ID that list finds for a name. A name that is an ID is itself.
func (s *site) byName(ctx context.Context, what, name string, list func() ([]string, error)) (string, error) {
	if openstack.UUID(name) != "" {
		return name, nil
	}
	return remembered(s, what+" "+name, keepNames, func() (string, error) {
		ids, err := list()
		switch {
		case err != nil:
			return "", err
		case len(ids) == 0:
			return "", invalidRequest("there is no %s %q in the project: `openstack %s list` shows those that there are", what, name, what)
		case len(ids) > 1:
			return "", invalidRequest("there are %d %ss of the name %q: give the ID", len(ids), what, name)
		}
		return ids[0], nil
	})
}
