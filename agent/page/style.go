package page

// style is the only style sheet. Its colours have a contrast of at least 4.5 to 1 on their
// ground, light and dark.
const style = `
:root{color-scheme:light dark;--ground:#fff;--text:#1c1f24;--quiet:#59616c;--edge:#d5dae0;--line:#0b5fad;--band:#dcebf9;--good:#116329;--bad:#b3261e;--grow:#116329;--end:#b35900;--link:#0b5fad}
@media (prefers-color-scheme:dark){:root{--ground:#14171b;--text:#e6e9ed;--quiet:#a3acb8;--edge:#3a4149;--line:#6cb6ff;--band:#1f3247;--good:#5fd38a;--bad:#ff8a80;--grow:#5fd38a;--end:#ffb066;--link:#6cb6ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:80rem;background:var(--ground);color:var(--text);font:1rem/1.5 system-ui,sans-serif}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--line);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.5rem}
h1{margin:0;font-size:1.5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:1rem 0 .5rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem}nav a{padding:.4rem 0}
.facts{display:flex;flex-wrap:wrap;gap:1rem 2rem;margin:1rem 0}.facts div{display:flex;flex-direction:column-reverse}.facts dt{color:var(--quiet)}.facts dd{margin:0;font-size:1.6rem;font-variant-numeric:tabular-nums}
.good{color:var(--good)}.bad{color:var(--bad)}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(22rem,100%),1fr));gap:1.25rem}
figure{margin:0;min-width:0}figcaption{overflow-wrap:anywhere;margin-bottom:.25rem}
.plot{position:relative;height:7rem;border:1px solid var(--edge)}.plot svg{display:block;width:100%;height:100%}
.plot span{position:absolute;left:.25rem;color:var(--quiet);font-size:.75rem;pointer-events:none}.top{top:0}.zero{bottom:0}
.hours{display:flex;justify-content:space-between;color:var(--quiet);font-size:.75rem;font-variant-numeric:tabular-nums}
path{vector-effect:non-scaling-stroke;fill:none}
.grid{stroke:var(--edge)}.band{fill:var(--band)}.line{stroke:var(--line);stroke-width:2px}.behind{stroke:var(--quiet);stroke-dasharray:3 3}
.hour{fill:transparent}.hour:hover{fill:var(--edge);fill-opacity:.4}
.mark{stroke:var(--end);stroke-width:2px;stroke-opacity:.8}.grow{stroke:var(--grow)}.failed{stroke:var(--bad);stroke-dasharray:4 2}a:hover .mark{stroke-width:5px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .75rem .3rem 0;border-bottom:1px solid var(--edge)}th[scope=row]{font-weight:600;overflow-wrap:anywhere}.n{text-align:right;font-variant-numeric:tabular-nums}
tr:target{background:var(--band)}
summary{cursor:pointer;padding:.3rem 0;overflow-wrap:anywhere}
code{font:.9em ui-monospace,monospace}
@media print{details::details-content{content-visibility:visible}}
`
