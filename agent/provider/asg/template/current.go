package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// What $Latest and $Default mean can change at any time. One DescribeLaunchTemplates tells
// it of 200 launch templates, without their contents.

const (
	latest         = "$Latest"
	defaultVersion = "$Default"

	// handlesPerCall is the most IDs or names that one DescribeLaunchTemplates takes.
	handlesPerCall = 200
	// narrowedLife is how long a narrowed read (provider.WithOnly) uses a number again.
	narrowedLife = time.Minute
	// sweepFrom is from how many launch templates on one list of all of the account's is
	// read in place of one call each, as after a start.
	sweepFrom = 9
)

// number is what a reference that is not fixed meant at a time.
type number struct {
	number int64
	at     time.Time
}

// loadCurrent makes sure that every reference has a number; the answer is why one has none.
// Without the right to ask for numbers alone, they are read with the contents, once in
// refusalLife.
func (rs *Resolver) loadCurrent(ctx context.Context, refs []ref) map[ref]*provider.Error {
	now, life := rs.now(), time.Duration(0)
	if provider.Only(ctx) != nil {
		life = narrowedLife
	}
	denied := rs.facts.refused(awsapi.ActionDescribeTemplates, now) != nil
	if denied {
		life = refusalLife
	}
	due := rs.facts.due(refs, now, life)
	failed := map[ref]*provider.Error{}
	if !denied {
		bad, refusal := rs.readCurrent(ctx, due)
		if refusal == nil {
			for _, r := range due {
				if e := bad[r.handle()]; e != nil {
					own := *e
					own.Err = fmt.Errorf("launch template %s: %w", r, e.Err)
					failed[r] = &own
				}
			}
			return failed
		}
		rs.facts.refuse(awsapi.ActionDescribeTemplates, refusal, now)
		due = rs.facts.due(due, now, refusalLife)
	}
	rs.sweep(ctx, due)
	due = rs.facts.due(due, now, refusalLife)
	for _, r := range due {
		t, err := rs.readVersion(ctx, r.handle(), r.version)
		if err != nil {
			failed[r] = err
			continue
		}
		rs.facts.store(version{r.handle(), t.version}, t)
		rs.facts.point(r, t.version, now)
	}
	return failed
}

// readCurrent reads the numbers of the references' launch templates. failed is why one has
// none, by launch template; refusal is the error of a missing right.
func (rs *Resolver) readCurrent(ctx context.Context, refs []ref) (failed map[handle]*provider.Error, refusal *provider.Error) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, r := range refs {
		if r.id != "" {
			ids[r.id] = true
		} else {
			names[r.name] = true
		}
	}
	failed = map[handle]*provider.Error{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(ids)), handlesPerCall) {
		if refusal := rs.readNumbers(ctx, chunk, true, failed); refusal != nil {
			return failed, refusal
		}
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(names)), handlesPerCall) {
		if refusal := rs.readNumbers(ctx, chunk, false, failed); refusal != nil {
			return failed, refusal
		}
	}
	return failed, nil
}

// readNumbers reads the numbers of some launch templates. EC2 refuses a list with one that
// does not exist as a whole: the halves are read then, down to that one.
func (rs *Resolver) readNumbers(ctx context.Context, list []string, byID bool, failed map[handle]*provider.Error) (refusal *provider.Error) {
	in := &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: list}
	of := func(name string) handle { return handle{name: name} }
	if byID {
		in = &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: list}
		of = func(id string) handle { return handle{id: id} }
	}
	now := rs.now()
	answer, err := rs.client.DescribeLaunchTemplates(ctx, in)
	if err != nil {
		e := awsapi.Classify("resolve template", "", awsapi.ActionDescribeTemplates, err)
		switch {
		case e.Kind == provider.Denied && !awsapi.BadLogin(e):
			return e
		case e.Kind == provider.Invalid && len(list) > 1:
			half := len(list) / 2
			if refusal := rs.readNumbers(ctx, list[:half], byID, failed); refusal != nil {
				return refusal
			}
			return rs.readNumbers(ctx, list[half:], byID, failed)
		}
		for _, name := range list {
			failed[of(name)] = e
		}
		return nil
	}
	found := map[handle]bool{}
	for _, t := range answer.LaunchTemplates {
		h := of(aws.ToString(t.LaunchTemplateName))
		if byID {
			h = of(aws.ToString(t.LaunchTemplateId))
		}
		found[h] = true
		rs.facts.point(ref{h.id, h.name, latest}, aws.ToInt64(t.LatestVersionNumber), now)
		rs.facts.point(ref{h.id, h.name, defaultVersion}, aws.ToInt64(t.DefaultVersionNumber), now)
	}
	for _, name := range list {
		if !found[of(name)] {
			failed[of(name)] = &provider.Error{Op: "resolve template", Kind: provider.Invalid, Err: errors.New("it does not exist"),
				Remedy: "point the group at a launch template that exists"}
		}
	}
	return nil
}

// sweep reads what $Latest, or $Default, is of all launch templates of the account, 200 in a
// page, where many references ask for it and as long as pages are cheaper than single calls.
// What it misses, and whatever goes wrong, shows when the version itself is read.
func (rs *Resolver) sweep(ctx context.Context, wanted []ref) {
	for _, alias := range []string{latest, defaultVersion} {
		many := 0
		for _, r := range wanted {
			if r.version == alias {
				many++
			}
		}
		if many >= sweepFrom {
			rs.sweepAlias(ctx, alias, max(2, many/4))
		}
	}
}

func (rs *Resolver) sweepAlias(ctx context.Context, alias string, most int) {
	pages := ec2.NewDescribeLaunchTemplateVersionsPaginator(rs.client, &ec2.DescribeLaunchTemplateVersionsInput{
		Versions: []string{alias}, MaxResults: aws.Int32(200),
	})
	for n := 0; pages.HasMorePages() && n < most; n++ {
		now := rs.now()
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return
		}
		for i := range answer.LaunchTemplateVersions {
			v := &answer.LaunchTemplateVersions[i]
			if v.LaunchTemplateData == nil {
				continue
			}
			t := templateOf(v)
			for _, h := range []handle{{id: t.id}, {name: t.name}} {
				rs.facts.store(version{h, t.version}, t)
				rs.facts.point(ref{h.id, h.name, alias}, t.version, now)
			}
		}
	}
}

// due are the references that are not fixed and whose number is older than life.
func (f *facts) due(refs []ref, now time.Time, life time.Duration) []ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []ref
	for _, r := range refs {
		if _, fixed := r.fixed(); fixed {
			continue
		}
		if known, ok := f.current[r]; !ok || now.Sub(known.at) >= life {
			out = append(out, r)
		}
	}
	return out
}

// point notes what a reference means.
func (f *facts) point(r ref, n int64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		f.current = map[ref]number{}
	}
	f.current[r] = number{n, at}
}

// versionOf is the version that a reference means.
func (f *facts) versionOf(r ref) version {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := r.fixed(); ok {
		return version{r.handle(), n}
	}
	return version{r.handle(), f.current[r].number}
}

// bare are the references to versions whose contents are not known.
func (f *facts) bare(refs []ref) []ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r ref) bool { return f.contents(f.versionOf(r)) != nil })
}

// contents are those of a version; nil: they are not known.
func (f *facts) contents(v version) *launchTemplate {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions[v]
}

func (f *facts) store(v version, t *launchTemplate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions == nil {
		f.versions = map[version]*launchTemplate{}
	}
	f.versions[v] = t
}

// begin and end are of a read that counts on what is known.
func (f *facts) begin() { f.reading(1) }
func (f *facts) end()   { f.reading(-1) }

func (f *facts) reading(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads += n
}

// retain forgets the versions and the numbers that none of the references means, unless another read is under way: one that was given
// up for lost still goes on, and its groups may be others.
func (f *facts) retain(refs []ref) {
	versions, used := map[version]bool{}, map[ref]bool{}
	for _, r := range refs {
		versions[f.versionOf(r)], used[r] = true, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reads > 1 {
		return
	}
	maps.DeleteFunc(f.versions, func(v version, _ *launchTemplate) bool { return !versions[v] })
	maps.DeleteFunc(f.current, func(r ref, _ number) bool { return !used[r] })
}
