// Which tests show a case already: case id -> [file below tests/, name of the test as its source has it].
const crash = [['scenarios/crash.test.mjs', 'kill -9 of the gateway at each of its steps'],
    ['scenarios/crash.test.mjs', 'kill -9 of the settler at each of its steps']];
const tokens = (name) => [['scenarios/tokens.test.mjs', name]];
const payers = (name) => [['scenarios/payers.test.mjs', name]];
const badInput = (name) => [['scenarios/bad-input.test.mjs', name]];
const wire = (name) => [['scenarios/wire.test.mjs', name]];
const operate = (name) => [['scenarios/operate.test.mjs', name]];
const upstream = (name) => [['scenarios/upstream.test.mjs', name]];
const doctor = (name) => [['scenarios/doctor.test.mjs', name]];
const unit = (file, name) => [[file, name]];
const PUBLIC = 'what is on the chain is public: its nonce under a junk signature never gets the answer';
const CONFLICT = 'the same nonce on another route, or for other arguments, is a conflict and changes nothing';
const NO_GAS = 'a relayer without gas money: wait, not pay again; the log says so; funded, it ends paid';
const TWO_SETTLERS = 'two settlers with one key: one sends, account nonces without a gap; killed, the other takes over';
const ACCEPTED = 'accepted: ${name}';
const KNOWN = '${name} before the settler does: known within seconds';

export const shown = {
    A10: [['drills/official-clients.test.mjs', '${name}: writes with a payment id, replies lost']],
    A11: crash,
    B01: crash,
    B07: crash,
    C02: operate(TWO_SETTLERS),
    C05: [['drills/lying-rpc.test.mjs', 'lying rpc: one of three']],
    C13: [...crash, ...unit('sql/test_relay.c', 'test_store'), ...unit('sql/test_relay.c', 'test_store_refused')],
    D04: [['drills/lying-rpc.test.mjs', 'lying rpc: one of three']],
    D06: [['drills/reorg.test.mjs', 'reorg: what was paid is mined again'],
        ['drills/reorg.test.mjs', 'reorg: what cannot be mined again ends unpaid']],
    D11: unit('unit/test_proof.c', 'reverts_of_the_token'),
    E01: payers('a signature\'s v of ${to} is ${from}'),
    E03: unit('settle/test_payment.c', 'test_signature_size'),
    E04: payers('a contract that does not accept the signature'),
    E05: doctor('a token without code, of another name, version or decimals'),
    E06: tokens('a token that ${name} pays for nothing'),
    E08: badInput('a blacklisted payer'),
    E10: doctor('a token without code, of another name, version or decimals'),
    E11: badInput(ACCEPTED),
    E12: tokens(KNOWN),
    E14: doctor('a clock that is not the chain\'s, either way'),
    E16: unit('settle/test_check.c', 'test_times'),
    E17: unit('settle/test_check.c', 'test_times'),
    E18: unit('settle/test_check.c', 'test_times'),
    E19: unit('settle/test_payment.c', 'test_signatures'),
    E21: unit('settle/test_payment.c', 'test_signed_fields'),
    E25: payers('an account that delegates by EIP-7702, in a transaction of type 4'),
    F01: payers(CONFLICT),
    F07: payers(PUBLIC),
    F09: tokens(KNOWN),
    F12: operate('two gateways on one database: 64 copies of one payment over both buy once'),
    F13: payers('two payers with the same nonce are two payments'),
    F20: payers('a payment that bought one call, sent as it is to another: a conflict, not a new price'),
    F24: unit('settle/test_check.c', 'test_times'),
    F25: [['drills/crowd.test.mjs', 'crowd: one payment for ${name}']],
    F26: badInput('HEAD has its GET\'s price, OPTIONS none'),
    F28: payers('the same nonce on two routes at once buys one of them'),
    F30: payers(PUBLIC),
    F31: [['drills/lost-replies.test.mjs', 'lost replies']],
    H02: payers(CONFLICT),
    H04: [['scenarios/parallel.test.mjs', '${COPIES} copies of one payment for ${name}']],
    H08: unit('sql/test_relay.c', 'test_claim_two'),
    H09: upstream('a write that was never reached: not charged, and runs when the same payment comes again'),
    H11: unit('sql/test_db.c', 'test_server_restart'),
    H13: unit('sql/test_db.c', 'test_deadline_in_flight'),
    H16: operate(TWO_SETTLERS),
    H20: unit('sql/test_orders.c', 'test_amounts'),
    J02: [['drills/hostile.test.mjs', 'hostile settlement']],
    J05: unit('settle/test_check.c', 'test_value'),
    J06: [['scenarios/parallel.test.mjs', '${COPIES} copies of one payment for ${name}']],
    J08: [['drills/hostile.test.mjs', 'hostile settlement']],
    K01: unit('sql/test_relay.c', 'test_end'),
    K02: unit('sql/test_relay.c', 'test_proofs'),
    L02: wire('a description that is not ASCII: headers are'),
    L04: wire('every answer may be read by a browser'),
    L05: wire('a preflight is answered here, for every path, and costs nothing'),
    L06: wire('every answer may be read by a browser'),
    L07: wire('PAYMENT-RESPONSE and X-PAYMENT-RESPONSE, by the official decoders'),
    L09: wire('no cache keeps what was refused, and none shares what was paid for'),
    L12: badInput('two payment headers'),
    L13: wire('Authorization: Bearer is the seller\'s and no payment'),
    L15: badInput('x402 version 3'),
    L18: tokens('18 decimals are exact'),
    L20: tokens('18 decimals are exact'),
    L21: badInput('${target} is not a way around the price'),
    L23: payers('addresses in ${name} case'),
    L24: operate(NO_GAS),
    M08: unit('settle/test_header.c', 'test_encoding'),
    M11: unit('settle/test_header.c', 'test_deep'),
};
