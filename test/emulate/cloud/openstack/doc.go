// Package openstack is an OpenStack that fits into a test: Keystone v3, Nova, Glance
// and Neutron (and what of Cinder a boot volume needs) on one loopback port, speaking
// the wire protocols that real services speak to gophercloud: version documents,
// microversions, tokens that expire, a catalog of several regions, pages, quotas,
// states that take time, faults of servers.
//
// What real services do and fakes get wrong is played as it was recorded against the
// services of the Zed release: a create that Nova cannot place is answered 202, and the
// server is in ERROR later with fault 500 "No valid host was found.", which is shown when
// the server is asked for by its ID and not in lists; a quota is 403; an
// unknown flavor, network, zone or image is 400; a deleted server is listed as deleting
// and then 404, never as DELETED; metadata keys have no slash and tags neither slash nor
// comma; a bound port outlives the server that it was given to; services remember a
// token's check, so that a revoked one works for a while (Options.TokenCache); a token
// that expires while a server builds puts the server into ERROR; user data is shown to
// nobody but an administrator.
//
// What is not emulated: policies (use Inject with Forbidden), Heat, Octavia, resize,
// rebuild, migration, snapshots, trunks, quotas of Neutron other than ports and floating
// IPs. A field that Nova knows and this package does not play is refused with 400, as
// Nova refuses one that it does not know, and never ignored.
//
// It listens on 127.0.0.1 only and dials nobody. It boots no machines: Options.OnState
// tells whoever does (package test/emulate/machine/openstack) what the cloud has done.
package openstack
