package openstack

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// listPage is one page of a list. gophercloud's own pages take an answer without the list
// for an empty one, and follow the link in the answer: behind a proxy it may name a host
// that only the cloud itself knows, or plain HTTP. The next page is
// requested by the ID of the last entry of this one.
type listPage struct {
	pagination.PageResult
	key string // of the list in the answer
}

func (p listPage) GetBody() any { return p.Body }

func (p listPage) entries() ([]any, error) {
	doc, _ := p.Body.(map[string]any)
	list, ok := doc[p.key].([]any)
	if !ok {
		return nil, &provider.Error{Kind: provider.Transient, Err: fmt.Errorf("the answer of OpenStack has no list of %s", strings.ReplaceAll(p.key, "_", " "))}
	}
	return list, nil
}

// IsEmpty implements pagination.Page.
func (p listPage) IsEmpty() (bool, error) {
	list, err := p.entries()
	return len(list) == 0, err
}

// NextPageURL implements pagination.Page.
func (p listPage) NextPageURL() (string, error) {
	list, err := p.entries()
	doc, _ := p.Body.(map[string]any)
	if links, _ := doc[p.key+"_links"].([]any); err != nil || len(links) == 0 {
		return "", err
	}
	last, _ := list[len(list)-1].(map[string]any)
	id, _ := last["id"].(string)
	if id == "" {
		return "", &provider.Error{Kind: provider.Transient, Err: fmt.Errorf("the last of a page of %s has no ID", p.key)}
	}
	next := p.URL
	query := next.Query()
	query.Set("marker", id)
	next.RawQuery = query.Encode()
	return next.String(), nil
}

// listAttempts is how often a list is begun of which a page's last entry has gone before the next page was read.
const listAttempts = 3

// List reads a list to its end. pages is the result of a list function of gophercloud; key
// is the list's name in the answer. A list is read anew where the entry that the next page was to follow is gone by
// then: Nova answers 400, others 404 (bad_request "marker [ID] not found").
func List[T any](ctx context.Context, pages pagination.Pager, key string) (all []T, err error) {
	pages = pages.WithPageCreator(func(r pagination.PageResult) pagination.Page { return listPage{r, key} })
	for range listAttempts {
		all = nil
		read := 0
		err = pages.EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
			var list []T
			err := page.(listPage).ExtractIntoSlicePtr(&list, key)
			all, read = append(all, list...), read+1
			return true, err
		})
		if read == 0 || !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			break
		}
	}
	return all, err
}
