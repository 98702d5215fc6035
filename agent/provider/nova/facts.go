package nova

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// How long facts are believed. A flavor's numbers never change, its name may be given
// to another; an image's name is given to a newer one now and then.
const (
	keepFlavors = 5 * time.Minute
	keepImage   = time.Minute
	keepNames   = 10 * time.Minute
)

func asAnswer(err error, to *gophercloud.ErrUnexpectedResponseCode) bool { return errors.As(err, to) }

// flavor is one of Nova's. RAM is in MiB, disks in GiB.
type flavor struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	VCPUs int               `json:"vcpus"`
	RAM   int               `json:"ram"`
	Disk  int               `json:"disk"`
	Specs map[string]string `json:"extra_specs"` // from 2.61
}

// flavors lists those that the project may use.
func (s *site) flavors(ctx context.Context) ([]flavor, error) {
	return remembered(s, "flavors", keepFlavors, func() ([]flavor, error) {
		var all []flavor
		for marker := ""; ; {
			var page struct {
				Flavors []flavor            `json:"flavors"`
				Links   []map[string]string `json:"flavors_links"`
			}
			query := url.Values{}
			if marker != "" {
				query.Set("marker", marker)
			}
			if err := s.get(ctx, "compute", "flavors/detail", query, &page); err != nil {
				return nil, err
			}
			all = append(all, page.Flavors...)
			if len(page.Links) == 0 || len(page.Flavors) == 0 {
				return all, nil
			}
			marker = page.Flavors[len(page.Flavors)-1].ID
		}
	})
}

func (s *site) flavor(ctx context.Context, name string) (flavor, error) {
	all, err := s.flavors(ctx)
	if err != nil {
		return flavor{}, err
	}
	for _, by := range []func(flavor) bool{func(f flavor) bool { return f.ID == name }, func(f flavor) bool { return f.Name == name }} {
		if i := slices.IndexFunc(all, by); i >= 0 {
			return all[i], nil
		}
	}
	return flavor{}, wrong("the project has no flavor %q: `openstack flavor list` shows those that it has", name)
}

// image is one of Glance's. MinDisk is in GiB.
type image struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Status       string    `json:"status"`
	MinDisk      int       `json:"min_disk"`
	Created      time.Time `json:"created_at"`
	Architecture string    `json:"architecture"`
	HWArch       string    `json:"hw_architecture"`
}

// image finds one by its ID or by its name; of several of one name the newest that is
// active, as an operator who uploads a new one under the old name means it.
func (s *site) image(ctx context.Context, name string) (image, error) {
	return remembered(s, "image "+name, keepImage, func() (image, error) {
		if uuidOf(name) != "" {
			var one image
			err := s.get(ctx, "image", "images/"+name, nil, &one)
			if missing(err) {
				err = wrong("there is no image %q: `openstack image list` shows those that there are", name)
			}
			return one, err
		}
		var list struct {
			Images []image `json:"images"`
		}
		if err := s.get(ctx, "image", "images", url.Values{"name": {name}}, &list); err != nil {
			return image{}, err
		}
		var best *image
		for i := range list.Images {
			one := &list.Images[i]
			if one.Status == "active" && (best == nil || one.Created.After(best.Created)) {
				best = one
			}
		}
		if best == nil {
			return image{}, wrong("there is no active image %q: `openstack image list` shows those that there are", name)
		}
		return *best, nil
	})
}

// lookUp finds the ID of a network or security group by name. what is Neutron's path,
// field the list's name in the answer.
func (s *site) lookUp(ctx context.Context, what, field, name string) (string, error) {
	if uuidOf(name) != "" {
		return name, nil
	}
	return remembered(s, what+" "+name, keepNames, func() (string, error) {
		var doc map[string][]struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		}
		if err := s.get(ctx, "network", what, url.Values{"name": {name}, "fields": {"id", "name"}}, &doc); err != nil {
			return "", err
		}
		switch list := doc[field]; len(list) {
		case 0:
			return "", wrong("there is no %s %q in the project: `openstack %s list` shows those that there are", what[:len(what)-1], name, what[:len(what)-1])
		case 1:
			return list[0].ID, nil
		default:
			return "", wrong("there are %d %s of the name %q: give the ID", len(list), what, name)
		}
	})
}

func (s *site) networkID(ctx context.Context, name string) (string, error) {
	return s.lookUp(ctx, "networks", "networks", name)
}

func (s *site) securityGroupID(ctx context.Context, name string) (string, error) {
	return s.lookUp(ctx, "security-groups", "security_groups", name)
}

// wrong is a mistake in the group's configuration.
func wrong(format string, args ...any) error {
	return &provider.Error{Kind: provider.Invalid, Err: fmt.Errorf(format, args...)}
}
