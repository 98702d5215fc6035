// Package page opens the agent's page in a real browser.
//
// It refuses to judge the page's facts, which agent/page and agent/localapi do: it asks
// what a person would notice, that the page is there at once, that it can be read on a
// phone, in the dark and by keyboard, and that it asks nobody for anything.
package page
