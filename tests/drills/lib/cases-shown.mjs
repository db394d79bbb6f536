// The cases, and which tests show those that no test names: case id -> [file below tests/, name of the test as its
// source has it].
const crash = [['scenarios/crash.test.mjs', 'of the gateway at each of its steps'],
    ['scenarios/crash.test.mjs', 'of the settler at ${points.join(\', \')}']];
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
const REFUNDS = [['scenarios/refunds.test.mjs', 'killed at ${part.join(\', \')} (I03, I07, I16, I24): paid once']];
const ASKED = [['scenarios/refunds.test.mjs', 'two settlers, and a person who asks for it ten times (I01, I04, I05, I27): paid once']];
const ACCEPTED = 'accepted: ${name}';
const KNOWN = '${name} before the settler does: known within seconds';

export const ids = `
    A01 A02 A03 A04 A05 A07 A09 A10 A11 A15 A16 A17 B01 B02 B03 B04 B07 C01 C02 C04 C05 C06 C08 C09 C10 C12 C13 D01
    D03 D04 D05 D06 D08 D09 D11 E01 E03 E04 E05 E06 E08 E10 E11 E12 E14 E16 E17 E18 E19 E21 E22 E23 E25 F01 F03 F06
    F07 F08 F09 F10 F12 F13 F17 F18 F19 F20 F22 F23 F24 F25 F26 F28 F30 F31 F33 G01 G02 G03 H01 H02 H04 H08 H09 H11
    H12 H13 H16 H18 H19 H20 H21 I01 I02 I03 I04 I05 I07 I09 I10 I11 I14 I15 I16 I18 I20 I22 I24 I25 I27 J01 J02 J04
    J05 J06 J08 K01 K02 K03 L01 L02 L04 L05 L06 L07 L09 L12 L13 L14 L15 L17 L18 L20 L21 L23 L24 L25 M01 M03 M06 M07
    M08 M11 M12 N02 N03`.trim().split(/\s+/);

export const shown = {
    A10: [['drills/official-clients.test.mjs', '${name}: writes with a payment id, replies lost']],
    A11: crash,
    B01: crash,
    B02: REFUNDS,
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
    F10: unit('sql/test_paid.c', 'test_replay_cacheable'),
    F12: operate('two gateways on one database: 64 copies of one payment over both buy once'),
    F13: payers('two payers with the same nonce are two payments'),
    F19: [['scenarios/facilitator.test.mjs', 'v${version}: valid, settled, and again the same hash, marked']],
    F20: payers('a payment that bought one call, sent as it is to another: a conflict, not a new price'),
    F24: unit('settle/test_check.c', 'test_times'),
    F25: [['drills/crowd.test.mjs', 'crowd: one payment for ${name}']],
    F26: badInput('HEAD has its GET\'s price, OPTIONS none'),
    F28: payers('the same nonce on two routes at once buys one of them'),
    F30: payers(PUBLIC),
    F31: [['drills/lost-replies.test.mjs', 'lost replies']],
    G01: [['scenarios/scan.test.mjs', 'found while the work runs, and then the work fails: it is owed back'],
        ...upstream('a read that gets ${name}: not charged, may run again')],
    G02: upstream('a write that was never reached: not charged, and runs when the same payment comes again'),
    G03: [...tokens(KNOWN), ...unit('sql/test_relay.c', 'test_proofs')],
    H02: payers(CONFLICT),
    H04: [['scenarios/parallel.test.mjs', '${COPIES} copies of one payment for ${name}']],
    H08: unit('sql/test_relay.c', 'test_claim_two'),
    H09: upstream('a write that was never reached: not charged, and runs when the same payment comes again'),
    H11: unit('sql/test_db.c', 'test_server_restart'),
    H12: unit('sql/test_db.c', 'test_h12_refused_then_good'),
    H13: unit('sql/test_db.c', 'test_deadline_in_flight'),
    H16: operate(TWO_SETTLERS),
    H18: unit('sql/test_cases.c', 'h18_late_commit'),
    H19: [...crash, ...unit('sql/test_cases.c', 'h19_settled_with_its_debt')],
    H20: unit('sql/test_orders.c', 'test_amounts'),
    I02: [...unit('sql/test_ledger.c', 'test_one_debt'), ...unit('sql/test_ledger.c', 'test_limits')],
    I11: [...REFUNDS, ...unit('sql/test_ledger.c', 'test_books')],
    I20: unit('sql/test_relay.c', 'test_end'),
    I22: unit('sql/test_repeats.c', 'test_sweep'),
    I25: ASKED,
    J01: [...unit('sql/test_cases.c', 'j01_late_money'),
        ['scenarios/scan.test.mjs', 'released, and submitted by a stranger: one debt, and the order says so']],
    J02: [['drills/hostile.test.mjs', 'hostile settlement']],
    J05: unit('settle/test_check.c', 'test_value'),
    J06: [['scenarios/parallel.test.mjs', '${COPIES} copies of one payment for ${name}']],
    J08: [['drills/hostile.test.mjs', 'hostile settlement']],
    K01: unit('sql/test_relay.c', 'test_end'),
    K02: unit('sql/test_relay.c', 'test_proofs'),
    K03: unit('sql/test_ledger.c', 'test_books'),
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
    L25: unit('settle/test_challenge.c', 'test_responses'),
    M03: [...unit('unit/test_rpc.c', 'faults_lead_to_the_next_endpoint'), ...unit('settle/test_header.c', 'test_json')],
    M06: unit('unit/test_fetch.c', 'm06_names_that_are_not_found'),
    M08: unit('settle/test_header.c', 'test_encoding'),
    M11: unit('settle/test_header.c', 'test_deep'),
    N03: badInput('somebody else\'s'),
};
