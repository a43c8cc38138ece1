// The peer: SMS through a BullMQ queue, as the documentation of its parts shows it. A job sends one SMS,
// or loops over many: each is sent with twilio-node, gets its row, and a delayed check of its status is
// queued; Twilio's webhook settles the row. It is here to be measured beside Todoku, and to be nothing
// more than that.
//
//   node peer.mjs work           sends and receives callbacks until it is killed; prints "ready"
//   node peer.mjs send N each    queues N jobs, waits until they are settled, prints the times as JSON
//   node peer.mjs send N bulk    the same with one job that loops over N recipients
//
// From the environment: REDIS_PORT, DATABASE_URL, TWILIO_API_URL, WEBHOOK_PORT.
import http from 'node:http'
import { Queue, Worker } from 'bullmq'
import pg from 'pg'
import twilio from 'twilio'

const { REDIS_PORT, DATABASE_URL, TWILIO_API_URL, WEBHOOK_PORT } = process.env
const connection = { host: '127.0.0.1', port: Number(REDIS_PORT) }
const database = new pg.Pool({ connectionString: DATABASE_URL, max: 20 })
const kept = { removeOnComplete: { age: 3600, count: 100 } }
const sends = new Queue('sms', { connection, defaultJobOptions: { attempts: 3, backoff: { type: 'exponential', delay: 2000 }, ...kept } })
const checks = new Queue('status-check', { connection, defaultJobOptions: kept })
const statusCheckDelay = 5 * 60 * 1000
const concurrency = Number(process.env.CONCURRENCY)

// To is a client for twilio-node that finds Twilio at another address.
class To {
  constructor(base) {
    this.base = new URL(base)
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 200 })
  }

  request({ method, uri, username, password, data }) {
    const { pathname, search } = new URL(uri)
    const body = new URLSearchParams(data).toString()
    return new Promise((resolve, reject) => {
      const request = http.request({
        agent: this.agent, host: this.base.hostname, port: this.base.port, path: pathname + search, method, auth: `${username}:${password}`,
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': Buffer.byteLength(body) },
      }, async answer => {
        try {
          resolve({ statusCode: answer.statusCode, headers: answer.headers, body: JSON.parse(await text(answer)) })
        } catch (error) {
          reject(error)
        }
      })
      request.on('error', reject)
      request.end(body)
    })
  }
}

async function text(stream) {
  let all = ''
  for await (const part of stream) all += part
  return all
}

const messages = twilio('AC' + '0'.repeat(32), 'simulator', { httpClient: new To(TWILIO_API_URL) }).messages

async function run(job) {
  const { to, body } = job.data
  if (job.name === 'send') return send(to, body)
  for (let i = 0; i < to.length; i++) {
    await job.updateProgress(i / to.length * 100)
    await send(to[i], body)
  }
}

async function send(to, body) {
  const message = await messages.create({ to, body, from: '+15005550006', statusCallback: `http://127.0.0.1:${WEBHOOK_PORT}/status` })
  await database.query("INSERT INTO logs (status, phone_number, message, twilio_sid, sent_at) VALUES ('PENDING', $1, $2, $3, now())", [to, body, message.sid])
  await checks.add('check', { sid: message.sid }, { delay: statusCheckDelay })
}

const outcome = { delivered: 'SUCCESS', undelivered: 'FAILED', failed: 'FAILED' }

async function callback(request, response) {
  const params = new URLSearchParams(await text(request))
  const status = outcome[params.get('MessageStatus')]
  if (status) await database.query("UPDATE logs SET status = $1, updated_at = now() WHERE twilio_sid = $2 AND status = 'PENDING'", [status, params.get('MessageSid')])
  response.writeHead(204).end()
}

async function work() {
  await database.query(`
    CREATE TABLE IF NOT EXISTS logs (
      id serial PRIMARY KEY, status text NOT NULL, phone_number text NOT NULL, message text NOT NULL,
      twilio_sid text, sent_at timestamptz, updated_at timestamptz
    );
    CREATE INDEX IF NOT EXISTS logs_sid ON logs (twilio_sid)`)
  new Worker('sms', run, { connection, concurrency })
  http.createServer(callback).listen(Number(WEBHOOK_PORT), '127.0.0.1', () => console.log('ready'))
}

// A status that arrives before its row is lost to this design, so the last of a run may never settle:
// the clock stops when nothing has settled for three seconds.
async function measure(n, mode) {
  await database.query('TRUNCATE logs')
  const body = 'ご予約は明日10時です。'
  const numbers = (from, count) => Array.from({ length: count }, (_, i) => `+8190${10_000_000 + from + i}`)
  const began = Date.now()
  if (mode === 'bulk') await sends.add('send-bulk', { to: numbers(0, n), body })
  else {
    for (let i = 0; i < n; i += 500) {
      await sends.addBulk(numbers(i, Math.min(500, n - i)).map(to => ({ name: 'send', data: { to, body } })))
    }
  }
  const queued = Date.now()
  let settled = 0, changed = queued
  while (settled < n && Date.now() - changed < 3000) {
    const now = Number((await database.query("SELECT count(*) FROM logs WHERE status <> 'PENDING'")).rows[0].count)
    if (now !== settled) [settled, changed] = [now, Date.now()]
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  console.log(JSON.stringify({ queued_s: (queued - began) / 1000, settled_s: (changed - began) / 1000, settled }))
}

if (process.argv[2] === 'work') {
  await work()
} else {
  await measure(Number(process.argv[3]), process.argv[4])
  process.exit(0)
}
